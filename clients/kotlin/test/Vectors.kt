/** The golden vectors, checked one by one: `java -cp ... sabun.VectorsKt wire-vectors.json`. */
package sabun

import java.io.File
import java.math.BigInteger
import kotlin.system.exitProcess

private var passed = 0
private val failures = mutableListOf<String>()

private fun equal(what: String, found: Any?, expected: Any?) {
    if (found == expected) passed++ else failures += "$what: $found is not $expected"
}

private class Entry(val value: Any?) {
    operator fun get(name: String) = Entry((value as Map<*, *>)[name])
    val list get() = (value as List<*>).map(::Entry)
    val text get() = value as String
    val number get() = BigInteger(text)
    val int get() = (value as BigInteger).toInt()
    fun has(name: String) = (value as Map<*, *>)[name] != null
}

private fun entries(table: Table) = with(table) { listOf(keep, opposite, each, nonePresent, noneAbsent) }
private fun pair(entry: Entry) = if (entry.value == null) null else entry.list.let { it[0].int to it[1].int }
private fun bits(double: Double) = "%016x".format(double.toRawBits())
private fun double(bits: String) = Double.fromBits(java.lang.Long.parseUnsignedLong(bits, 16))

private fun study(vector: Entry) {
    val terms = Terms(vector["terms"].text)
    val name = vector["name"].text
    equal("$name task", terms.taskId, vector["task_id"].text)
    val names = listOf("keep", "opposite", "each", "none_present", "none_absent")
    equal("$name table", entries(terms.table), names.map { vector["table"][it].number })
    equal("$name certified", terms.certified, Ratio.of(vector["certified_epsilon"].text))
    val identity = reportId(terms, unhex(vector["credential"].text))
    equal("$name id", hex(identity), vector["report_id"].text)
    if (terms.sampled) equal("$name index", assignedIndex(terms, identity), vector["assigned_index"].int)
    terms.subset?.let { equal("$name subset", it.accept to it.width, vector["accept"].number to vector["width"].int) }
    for (case in vector["symbols"].list) symbol(name, terms, case)
    for (report in vector["reports"].list) {
        val said = Entry(Json.parse(report["json"].text))
        val payload = if (terms.subset != null || terms.protocol == "pckv-ue") payload(said["symbol"].list.map { it.int }.toIntArray())
        else payload(terms, (said["index"].value as BigInteger?)?.toInt(), said["symbol"].int)
        equal("$name bytes", hex(pack(terms, said["round"].int, unhex(said["id"].text), payload)), report["bytes"].text)
        equal("$name size", terms.reportSize, report["bytes"].text.length / 2)
    }
}

private fun symbol(name: String, terms: Terms, case: Entry) {
    val subset = terms.subset
    val word = case["word"].number
    if (subset != null) {
        val own = subset.own(case["held"].list.map { pair(it)!! })
        val drawn = case["drawn"].list.map { it.int }
        equal("$name own", own.sorted(), case["own"].list.map { it.int })
        equal("$name kept", subset.isKept(own, drawn, word), case["kept"].value)
        equal("$name said", subset.said(drawn).toList(), case["symbol"].list.map { it.int })
    } else if (terms.sampled) equal("$name symbol", ternarySymbol(terms.table, case["state"].int, word), case["symbol"].int)
    else equal("$name symbol", jointSymbol(terms.table, pair(case["picked"]), word), case["symbol"].int)
}

private fun table(facts: Entry) {
    val protocol = facts["protocol"].text
    val epsilon = Ratio.of(facts["epsilon"].text)!!
    val (keys, padding, size) = listOf("keys", "padding", "bits").map { facts[it].int }
    val name = "$protocol ${facts["epsilon"].text} $keys $size"
    val certified = try { certifiedEpsilon(protocol, epsilon, keys, padding, size) } catch (_: ClientError) { null }
    val expected = facts["table"].value?.let { facts["table"].list.map { it.number } }
    equal("$name table", certified?.let { entries(tableFor(protocol, epsilon, keys, padding, size)) }, expected)
    if (certified == null || expected == null) return
    equal("$name certified", certified.text(), facts["certified"].text)
    if (facts.has("width")) {
        val subset = subsetFor(protocol, epsilon, keys, padding, size)
        equal("$name subset", subset.accept to subset.width, facts["accept"].number to facts["width"].int)
    }
}

/** A memoised answer, one charge, the same bytes, whatever is held. */
private fun behave(vectors: Entry) {
    for (vector in vectors["studies"].list.filter { it["name"].text != "privkvm" }) {
        val terms = Terms(vector["terms"].text)
        val storage = MemoryStorage()
        val first = Client(terms, storage, maxEpsilon = "1.5").report(mapOf("LINE" to 0.5, "d" to Double.NaN, null to 1, 3 to "x"))
        val second = Client(terms, storage, maxEpsilon = "1.5").report(mapOf("YouTube" to -1))
        equal("${terms.protocol} again", hex(second), hex(first))
        equal("${terms.protocol} size", first.size, terms.reportSize)
    }
    val text = vectors["studies"].list[0]["terms"].text.replace("\"rounds\":1,", "\"rounds\":3,")
    val client = Client(Terms(text), MemoryStorage(), maxEpsilon = "2.9")
    client.report(emptyMap<Any, Any>())
    val refusal = try { client.report(mapOf("LINE" to 1), round = 1); "" } catch (error: ClientError) { error.message!! }
    equal("budget", refusal.startsWith("this device has epsilon 1.4 of 2.9 left; this report needs 1.5."), true)
}

/** Counts of the symbols of new devices, as JSON: for a test of their law. */
private fun draw(text: String, n: Int) {
    val terms = Terms(text)
    val counts = HashMap<String, BigInteger>()
    repeat(n) { counts.merge(hex(Client(terms, MemoryStorage()).report(mapOf("a" to 0.4)).drop(37).toByteArray()), BigInteger.ONE, BigInteger::add) }
    println(Json.write(counts))
}

fun main(arguments: Array<String>) {
    if (arguments.size > 1) {
        for (asked in Entry(Json.parse(arguments[1])).list) draw(asked["terms"].text, asked["n"].int)
        return
    }
    val vectors = Entry(Json.parse(File(arguments[0]).readText()))
    vectors["studies"].list.filter { it["name"].text != "privkvm" }.forEach(::study)
    vectors["tables"].list.filter { it["protocol"].text != "privkvm" }.forEach(::table)
    for (given in vectors["thresholds"].list) {
        val (low, high) = given["range"].list.map { Ratio.of(it.text)!! }
        equal("ends", listOf(low, high).map { bits(it.toDouble()) }, given["ends"].list.map { it.text })
        equal("texts", listOf(low, high).map { it.text() }, given["range"].list.map { it.text })
        for (case in given["cases"].list.map { it.list }) for ((place, clip) in listOf(1 to false, 2 to true)) {
            val found = thresholdOf(low to high, low.toDouble() to high.toDouble(), double(case[0].text), clip)
            equal("threshold of ${case[0].text}", found?.toString(), case[place].value)
        }
    }
    for (given in vectors["doubles"].list.map { it.list }) {
        equal("double of ${given[0].text}", bits(Ratio.of(given[0].text)!!.toDouble()), given[1].text)
        equal("ratio", Ratio.of(double(given[1].text)).toDouble() == double(given[1].text), true)
    }
    for (given in vectors["unary"].list) {
        val table = tableFor("pckv-ue", Ratio.of(given["epsilon"].text)!!, given["keys"].int, 2, given["bits"].int)
        val found = unarySymbols(table, given["keys"].int, pair(given["picked"]), unhex(given["words"].text))
        equal("unary", found.toList(), given["symbols"].list.map { it.int })
    }
    for (given in vectors["odd_studies"].list) {
        val terms = Terms(given["terms"].text)
        equal("task", terms.taskId, given["task_id"].text)
        for (asked in given["asked"].list.map { it.list }) {
            equal("id", hex(reportId(terms, unhex(asked[0].text))), asked[1].text)
            equal("index", assignedIndex(terms, unhex(asked[1].text), unhex(given["seed"].text)), asked[2].int)
        }
    }
    behave(vectors)
    failures.take(20).forEach(::println)
    println("$passed checks passed, ${failures.size} failed")
    if (failures.isNotEmpty()) exitProcess(1)
}
