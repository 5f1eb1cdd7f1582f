/** The terms of a study, its ids, and the bytes of a report. */
package sabun

import java.math.BigInteger
import java.math.BigInteger.ONE
import java.nio.ByteBuffer
import java.security.MessageDigest
import java.time.LocalDate
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

internal fun sha256(content: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(content)
internal fun hmac(key: ByteArray, message: ByteArray): ByteArray =
    Mac.getInstance("HmacSHA256").run { init(SecretKeySpec(key, "HmacSHA256")); doFinal(message) }
internal fun ascii(text: String) = text.toByteArray(Charsets.US_ASCII)
internal fun u32(number: Int): ByteArray = ByteBuffer.allocate(4).putInt(number).array()
fun hex(content: ByteArray) = content.joinToString("") { "%02x".format(it) }
fun unhex(text: String) = ByteArray(text.length / 2) { text.substring(2 * it, 2 * it + 2).toInt(16).toByte() }

private val FIELDS = ("answers epsilon expected_reports index_commitment index_mode keys keys_per_user min_batch not_after " +
    "not_before padding_length protocol requested rounds table_bits typical_frequency value_range version").split(" ")
private val FARTHEST = Ratio(BigInteger.TEN.pow(100))

/** A study as a device knows it: read from its canonical JSON, letter for letter. */
class Terms(text: String) {
    val json = text.trim()
    private val record = Json.parse(json) as? Map<*, *> ?: throw ClientError("a study must be a JSON object; it is not.")
    val keys: List<Any>
    val epsilon: Ratio
    val range: Pair<Ratio, Ratio>
    val protocol: String
    val padding: Int
    val rounds: Long
    val bits: Int
    val answers: String
    val indexMode: String
    val indexCommitment: String?
    val notBefore: LocalDate?
    val notAfter: LocalDate?
    val certified: Ratio
    val table: Table
    val subset: Subset?
    val taskId: String
    val shortId: ByteArray

    init {
        must(record.keys.map { "$it" }.sorted() == FIELDS && record["version"] == ONE) { "the fields of version 1" }
        keys = (record["keys"] as? List<*>).orEmpty().map { it ?: "" }
        must(keys.size in 1..(1 shl 24) && keys.toSet().size == keys.size) { "distinct keys" }
        val words = keys.all { it is String && it != "" && whole(it) }
        must(words || keys.all { it is BigInteger }) { "keys that are all texts or all whole numbers" }
        epsilon = amount("epsilon")
        must(epsilon > Ratio(0)) { "an epsilon above 0" }
        val ends = (record["value_range"] as? List<*>).orEmpty().map { (it as? String)?.let(Ratio::of) }
        must(ends.size == 2 && ends.all { it != null }) { "a value range" }
        range = ends[0]!! to ends[1]!!
        val near = Ratio(0) - FARTHEST <= range.first && range.second <= FARTHEST
        must(near && range.first.toDouble() < range.second.toDouble()) { "a range with lower < upper, within 1e100 of 0" }
        protocol = choice("protocol", PROTOCOLS)
        answers = choice("answers", listOf("memoised", "fresh"))
        indexMode = choice("index_mode", listOf("assigned", "chosen"))
        padding = count("padding_length", 1, keys.size.toLong()).toInt()
        must(padding == 1 || protocol !in SAMPLED) { "a padding length of 1 where one key is asked about" }
        rounds = count("rounds", 1, 0xffffffffL)
        bits = count("table_bits", 16, 64).toInt()
        indexCommitment = text("index_commitment")
        must(indexCommitment == null || Regex("[0-9a-f]{64}").matches(indexCommitment)) { "a commitment in hex" }
        notBefore = day("not_before")
        notAfter = day("not_after")
        // Computed now: a table that cannot keep its promise must not come into being.
        certified = certifiedEpsilon(protocol, epsilon, keys.size, padding, bits)
        table = tableFor(protocol, epsilon, keys.size, padding, bits)
        subset = if (protocol in SETS) subsetFor(protocol, epsilon, keys.size, padding, bits) else null
        must(Json.write(canonical()) == json) { "its canonical form; this one was edited or reformatted" }
        val digest = sha256(ascii(json))
        taskId = hex(digest)
        shortId = digest.copyOf(16)
    }

    val sampled get() = protocol in SAMPLED
    val joint get() = protocol in JOINT
    val valueless get() = protocol == "rr-f" || protocol == "set-f"
    private val places = keys.withIndex().associate { (place, key) -> "$key" to place }
    private val texts = keys[0] is String

    /** Where a key stands in the list. */
    fun placeOf(key: Any?): Int? = if (key is String || (!texts && key is Number)) places["$key"] else null

    /** Bytes of a report: the same for every person of a study. */
    val reportSize get() = 37 + when {
        sampled -> if (indexMode == "chosen") 5 else 1
        joint -> 4
        else -> (keys.size + 3) / 4
    }

    private fun canonical(): Map<*, *> = record + mapOf(
        "epsilon" to epsilon.text(),
        "value_range" to listOf(range.first.text(), range.second.text()),
        "typical_frequency" to text("typical_frequency")?.let { Ratio.of(it)?.text() },
    )

    private fun text(name: String): String? {
        must(record[name] == null || record[name] is String) { "null or a text as $name" }
        return record[name] as? String
    }

    private fun day(name: String) = text(name)?.let {
        runCatching { LocalDate.parse(it) }.getOrNull() ?: throw ClientError("$name must be a date or null.")
    }

    private fun amount(name: String) = (record[name] as? String)?.let(Ratio::of) ?: throw ClientError("$name must be a number.")

    private fun choice(name: String, options: List<String>) =
        (record[name] as? String)?.takeIf { it in options } ?: throw ClientError("$name must be one of $options; got another.")

    private fun count(name: String, low: Long, high: Long): Long {
        val number = record[name] as? BigInteger
        must(number != null && number >= BigInteger.valueOf(low) && number <= BigInteger.valueOf(high)) { "$name from $low to $high" }
        return number!!.toLong()
    }

    private fun whole(text: String) = Charsets.UTF_8.newEncoder().canEncode(text)

    private inline fun must(holds: Boolean, what: () -> String) {
        if (!holds) throw ClientError("a study must have ${what()}; it does not.")
    }
}

/** 16 bytes that stand for a credential within one study. */
fun reportId(terms: Terms, credential: ByteArray): ByteArray =
    sha256(ascii("sabun report id\u0000") + terms.shortId + credential).copyOf(16)

/** The key a report id is asked about: exactly uniform over the keys, by rejection. */
fun assignedIndex(terms: Terms, identity: ByteArray, seed: ByteArray = ByteArray(0)): Int {
    val keys = big(terms.keys.size)
    val limit = ONE.shiftLeft(64) / keys * keys
    for (counter in 0..Int.MAX_VALUE) {
        val digest = hmac(ascii("sabun index\u0000") + seed, terms.shortId + identity + u32(counter))
        val drawn = BigInteger(1, digest.copyOf(8))
        if (drawn < limit) return drawn.mod(keys).toInt()
    }
    throw ClientError("no index was found.")
}

/** The credential of an enrolment, of a number each side drew before it knew the other's. */
fun credentialOf(terms: Terms, secret: ByteArray, nonce: ByteArray): ByteArray =
    sha256(ascii("sabun credential\u0000") + terms.shortId + secret + nonce)

/** ver u8 | task 16 bytes | round u32 | report id 16 bytes | [index u32] | symbol. */
fun pack(terms: Terms, round: Int, identity: ByteArray, payload: ByteArray): ByteArray =
    byteArrayOf(1) + terms.shortId + u32(round) + identity + payload

/** One symbol, with the key it is about where the device chose it. */
fun payload(terms: Terms, index: Int?, symbol: Int): ByteArray =
    if (terms.joint) u32(symbol) else (index?.let(::u32) ?: ByteArray(0)) + byteArrayOf(symbol.toByte())

/** Two bits per key, key 0 in the highest bits of the first byte. */
fun payload(symbols: IntArray): ByteArray {
    val packed = ByteArray((symbols.size + 3) / 4)
    symbols.forEachIndexed { key, symbol -> packed[key / 4] = (packed[key / 4].toInt() or (symbol shl (6 - 2 * (key % 4)))).toByte() }
    return packed
}
