/** The device: a person's pairs go in, bytes come out, nothing else leaves. */
package sabun

import java.math.BigInteger
import java.math.BigInteger.ONE
import java.math.BigInteger.ZERO
import java.security.SecureRandom
import java.time.LocalDate
import java.time.ZoneOffset

private val WHOLE = 1L shl 53
private val NO = setOf("", "0", "0.0", "no", "false", "nan")

/** Where the book lies: one text, changed in one durable step; `step` answers with the new text (null: unchanged). */
interface Storage {
    fun <T> change(step: (String?) -> Pair<String?, T>): T
}

/** A book that is forgotten with the object. On Android use a file: write aside, sync, rename, under a lock. */
class MemoryStorage : Storage {
    private var kept: String? = null

    @Synchronized
    override fun <T> change(step: (String?) -> Pair<String?, T>): T {
        val (text, result) = step(kept)
        kept = text ?: kept
        return result
    }
}

/** One person's device in one study; asking again in the same round gives the identical bytes. */
class Client(
    private val terms: Terms,
    private val storage: Storage,
    credential: ByteArray? = null,
    seed: ByteArray = ByteArray(0),
    maxEpsilon: String? = null,
    private val clip: Boolean = false,
    private val random: SecureRandom = SecureRandom(),
) {
    private val limit = maxEpsilon?.let { Ratio.of(it) ?: throw ClientError("maxEpsilon must be a finite number.") }
    private val ends = terms.range.first.toDouble() to terms.range.second.toDouble()
    private val identity: ByteArray
    val index: Int?

    init {
        if (credential != null && credential.size < 16) throw ClientError("credential must have at least 16 bytes.")
        val committed = terms.indexCommitment
        val honest = if (committed == null) seed.isEmpty() else hex(sha256(seed)) == committed
        if (!honest) throw ClientError("seed must be the one this study committed to; it is not.")
        if (limit != null && terms.certified > limit) {
            throw ClientError("the study asks for epsilon ${terms.certified.text()}; this device accepts at most ${limit.text()}.")
        }
        val fresh = credential ?: bytes(16)
        val chosen = if (terms.sampled && terms.indexMode == "chosen") below(terms.keys.size) else null
        val page = change { book ->
            val page = book.page(terms.taskId)
            page.getOrPut("credential") { hex(fresh) }
            if (chosen != null) page.getOrPut("place") { big(chosen) }
            page.toMap()
        }
        val own = unhex(page["credential"] as String)
        if (credential != null && !own.contentEquals(credential)) throw ClientError("credential must be the diary's; got another.")
        identity = reportId(terms, own)
        index = if (terms.sampled && chosen == null) assignedIndex(terms, identity, seed) else (page["place"] as BigInteger?)?.toInt()
    }

    /** The bytes to send; booked and kept before they are handed over. What `pairs` holds never throws an error. */
    fun report(pairs: Map<*, *>, round: Int = 0, today: LocalDate = LocalDate.now(ZoneOffset.UTC)): ByteArray {
        if (round < 0 || round >= terms.rounds) throw ClientError("round must be a whole number below ${terms.rounds}.")
        val open = (terms.notBefore == null || today >= terms.notBefore) && (terms.notAfter == null || today <= terms.notAfter)
        if (!open) throw ClientError("the study is not open today.")
        val held = thresholds(pairs)
        return change { book ->
            val page = book.page(terms.taskId)
            val sent = page.part("sent")
            val before = sent["$round"]
            if (before != null) unhex(before as String) else {
                charge(book)
                val secret = unhex(book["secret"] as String)
                val report = pack(terms, round, identity, answer(secret, page.part("memory"), held))
                sent["$round"] = hex(report)
                report
            }
        }
    }

    private fun charge(book: MutableMap<String, Any?>) {
        val before = Ratio.of(book["spent"] as String)!!
        val total = before + terms.certified
        if (limit != null && total > limit) {
            throw ClientError("this device has epsilon ${(limit - before).text()} of ${limit.text()} left; this report needs " +
                "${terms.certified.text()}. Nothing was drawn, nothing was booked.")
        }
        book["spent"] = total.text()
    }

    private fun answer(secret: ByteArray, memory: MutableMap<String, Any?>, held: Map<Int, Long>): ByteArray {
        if (terms.answers == "fresh") {
            return draw(picked(held.toList()).map { (place, threshold) -> place to signOf(threshold, random.nextLong() ushr 11) })
        }
        val asked = held.toSortedMap().filterKeys { !terms.sampled || it == index }
        val states = asked.map { (place, threshold) -> place to signOf(threshold, signWord(secret, place)) }
        val message = states.fold(ascii("state\u0000")) { all, (place, state) -> all + u32(place) + byteArrayOf(state.toByte()) }
        return unhex(memory.getOrPut(hex(hmac(secret, message))) { hex(draw(picked(states))) } as String)
    }

    /** The bits that turn a value into a sign: the same for ever, so that a small change rarely shows. */
    private fun signWord(secret: ByteArray, place: Int): Long =
        BigInteger(1, hmac(secret, ascii("sign\u0000" + terms.taskId) + u32(place)).copyOf(8)).shiftRight(11).toLong()

    private fun thresholds(pairs: Map<*, *>): Map<Int, Long> {
        val found = HashMap<Int, Long>()
        try {
            for ((key, value) in pairs) {
                try {
                    val place = terms.placeOf(key) ?: continue
                    found[place] = (if (terms.valueless) yes(value) else threshold(value)) ?: continue
                } catch (_: Exception) {
                    // this pair is absent, the others are read on
                }
            }
        } catch (_: Exception) {
            // holds what was read until then
        }
        return found
    }

    private fun yes(value: Any?): Long? = when (value) {
        null, false -> null
        is String -> if (value.trim().lowercase() in NO) null else WHOLE
        is Number -> value.toDouble().let { if (it == 0.0 || it.isNaN()) null else WHOLE }
        else -> WHOLE
    }

    private fun threshold(value: Any?): Long? =
        ((value as? Number)?.toDouble() ?: (value as? String)?.toDoubleOrNull())?.let { thresholdOf(terms.range, ends, it, clip) }

    private fun <T> picked(own: List<Pair<Int, T>>): List<Pair<Int, T>> = when {
        terms.sampled -> own.filter { it.first == index }
        terms.subset == null -> below(maxOf(own.size, terms.padding)).let { if (it < own.size) listOf(own[it]) else emptyList() }
        own.size <= terms.padding -> own
        else -> sample(own.size, terms.padding).map { own[it] }
    }

    private fun draw(about: List<Pair<Int, Int>>): ByteArray {
        val subset = terms.subset
        if (subset != null) {
            val own = subset.own(about)
            while (true) {
                val drawn = sample(subset.symbols, subset.width)
                if (subset.isKept(own, drawn, word(subset.bits))) return payload(subset.said(drawn))
            }
        }
        val picked = about.firstOrNull()
        if (terms.protocol == "pckv-ue") {
            return payload(unarySymbols(terms.table, terms.keys.size, picked, bytes(terms.keys.size * ((terms.bits + 7) / 8))))
        }
        val word = word(terms.bits)
        val symbol = if (terms.joint) jointSymbol(terms.table, picked, word) else ternarySymbol(terms.table, picked?.second ?: 0, word)
        return payload(terms, if (terms.indexMode == "chosen") index else null, symbol)
    }

    private fun <T> change(step: (MutableMap<String, Any?>) -> T): T = storage.change { text ->
        @Suppress("UNCHECKED_CAST")
        val book = if (text == null) mutableMapOf("secret" to hex(bytes(32)), "spent" to "0", "studies" to mutableMapOf<String, Any?>(), "version" to ONE)
        else mutable(Json.parse(text)) as MutableMap<String, Any?>
        val result = step(book)
        Json.write(book).takeIf { it != text } to result
    }

    private fun bytes(size: Int) = ByteArray(size).also(random::nextBytes)
    private fun word(bits: Int) = BigInteger(bits, random)
    private fun below(limit: Int) = random.nextInt(limit) // by rejection, as its documentation says

    /** `count` distinct whole numbers below `limit`, every choice as likely. */
    private fun sample(limit: Int, count: Int): List<Int> {
        val moved = HashMap<Int, Int>()
        return List(count) { i ->
            val place = i + below(limit - i)
            (moved[place] ?: place).also { moved[place] = moved[i] ?: i }
        }
    }
}

/** Where a double stands in a range, out of 2^53: its exact ratio, never its text; null when it is outside and not clipped. */
fun thresholdOf(range: Pair<Ratio, Ratio>, ends: Pair<Double, Double>, value: Double, clip: Boolean): Long? {
    var number = value
    if (!(number >= ends.first && number <= ends.second)) {
        if (!clip || number.isNaN()) return null
        number = if (number < ends.first) ends.first else ends.second
    }
    val place = (Ratio.of(number) - range.first) / (range.second - range.first) * Ratio(ONE.shiftLeft(53))
    return place.floor().max(ZERO).min(BigInteger.valueOf(WHOLE)).toLong()
}

private fun mutable(value: Any?): Any? = when (value) {
    is Map<*, *> -> value.entries.associateTo(mutableMapOf()) { "${it.key}" to mutable(it.value) }
    else -> value
}

@Suppress("UNCHECKED_CAST")
private fun MutableMap<String, Any?>.part(name: String) = getOrPut(name) { mutableMapOf<String, Any?>() } as MutableMap<String, Any?>

private fun MutableMap<String, Any?>.page(task: String) = part("studies").part(task)
