/** The integer tables every protocol draws from, subsets, and the step from a state and a fresh word to a symbol. */
package sabun

import java.math.BigInteger
import java.math.BigInteger.ONE

/** A rule about public facts was broken; nothing depends on what a person holds. */
open class ClientError(message: String) : Exception(message)

val SAMPLED = listOf("kv3", "privkv", "privkv-tight", "rr-f")
val JOINT = listOf("pckv-grr", "pckv-grr+")
val SETS = listOf("set", "set-f")

/** What this client knows: everything but PrivKVM, whose later rounds it leaves out. */
val PROTOCOLS = SAMPLED + "pckv-ue" + JOINT + SETS

/** One channel in whole numbers out of 2^bits. */
class Table(
    val bits: Int, val keep: BigInteger, val opposite: BigInteger, val each: BigInteger,
    val nonePresent: BigInteger, val noneAbsent: BigInteger, val signs: Int,
) {
    init {
        val shows = keep + opposite > big(signs) * each
        val good = keep > opposite && opposite >= big(signs - 1) && keep > each && each >= ONE && shows
        if (!good) throw ClientError("epsilon must be large enough to leave a trace in a table of $bits bits; it is not.")
    }
}

/** How a `set` protocol draws: `width` of all symbols, kept if they meet what is held or a word is below `accept`. */
class Subset(val keys: Int, val padding: Int, val bits: Int, val accept: BigInteger, val width: Int, val signs: Int) {
    val symbols get() = signs * keys + padding

    /** The held sign alone, the other alone, and one given sign of a key not held. */
    fun law(): Triple<Ratio, Ratio, Ratio> {
        val less = Ratio(1) - Ratio(accept, ONE.shiftLeft(bits))
        fun but(chance: Ratio) = Ratio(1) - chance * less
        val all = but(misses(padding, symbols - width, symbols))
        if (signs == 1) {
            val share = Ratio(big(width), big(symbols)) / all
            return Triple(share, Ratio(0), share * but(misses(padding, symbols - width, symbols - 1)))
        }
        val other = misses(padding - 1, symbols - 1 - width, symbols - 2)
        val absent = other * Ratio(big(symbols - width - padding), big(symbols - 1 - padding))
        val scale = Ratio(big(width) * big(symbols - width), big(symbols) * big(symbols - 1)) / all
        return Triple(scale, scale * but(other), scale * but(absent))
    }

    /** S: plus of key k is 2k, minus 2k + 1 (k itself without signs); dummies fill it up. */
    fun own(held: List<Pair<Int, Int>>): Set<Int> {
        val pairs = held.map { (key, state) -> signs * key + state - 1 }
        return (pairs + (0 until padding - pairs.size).map { signs * keys + it }).toSet()
    }

    fun isKept(own: Set<Int>, drawn: List<Int>, word: BigInteger) = drawn.any { it in own } || word < accept

    /** What a subset says of each key: 1 plus, 2 minus, 0 nothing or both. */
    fun said(drawn: List<Int>): IntArray {
        val found = IntArray(keys)
        for (symbol in drawn) if (symbol < signs * keys) found[symbol / signs] += 1 + symbol % signs
        return IntArray(keys) { found[it] % 3 }
    }
}

private fun misses(held: Int, rest: Int, all: Int): Ratio {
    var (top, bottom) = ONE to ONE
    for (i in 0 until held) {
        top *= big(maxOf(rest - i, 0))
        bottom *= big(all - i)
    }
    return Ratio(top, bottom)
}

private fun noise(subset: Subset): Ratio {
    val (keep, opposite, each) = subset.law()
    val said = Ratio(subset.signs) * each
    val gap = keep + opposite - said
    if (gap.n.signum() <= 0) return Ratio(BigInteger.TEN.pow(30))
    val frequency = said * (Ratio(1) - said) / (gap * gap)
    val apart = keep - opposite
    return if (subset.signs == 1) frequency else frequency + said / (apart * apart)
}

internal fun growthOf(epsilon: Ratio) = expDown(minOf(epsilon, Ratio(100)))

fun subsetFor(protocol: String, epsilon: Ratio, keys: Int, padding: Int, bits: Int): Subset {
    if (padding > 256) throw ClientError("padding_length must be at most 256 for '$protocol'; got $padding.")
    val accept = (Ratio(ONE.shiftLeft(bits)) / growthOf(epsilon)).ceil()
    fun of(width: Int) = Subset(keys, padding, bits, accept, width, if (protocol == "set-f") 1 else 2)
    var low = 1
    var high = keys
    while (low < high) {
        val middle = (low + high) / 2
        if (noise(of(middle)) <= noise(of(middle + 1))) high = middle else low = middle + 1
    }
    return of(low)
}

fun tableFor(protocol: String, epsilon: Ratio, keys: Int, padding: Int, bits: Int): Table {
    val size = ONE.shiftLeft(bits)
    val growth = growthOf(epsilon)
    fun share(others: Int) = (Ratio(size) / (growth + Ratio(others))).ceil()
    return when (protocol) {
        "kv3" -> share(2).let { single(bits, size - TWO * it, it, it) }
        "rr-f" -> share(1).let { single(bits, size - it, BigInteger.ZERO, it, 1) }
        "privkv-tight" -> share(3).let { single(bits, size - big(3) * it, it, it) }
        "privkv" -> {
            val half = growthOf(epsilon / Ratio(2))
            val each = (Ratio(size) / (Ratio(2) * (half + Ratio(1)))).ceil()
            val some = size - TWO * each
            val keep = (Ratio(some) * half / (half + Ratio(1))).floor()
            single(bits, keep, some - keep, each)
        }
        "pckv-ue" -> {
            val keep = (Ratio(size / TWO) * growth / (growth + Ratio(1))).floor()
            single(bits, keep, size / TWO - keep, share(3))
        }
        "set", "set-f" -> {
            val subset = subsetFor(protocol, epsilon, keys, padding, bits)
            val (keep, opposite, each) = subset.law().toList().map(::seen)
            single(64, keep, opposite, each, subset.signs)
        }
        "pckv-grr", "pckv-grr+" -> {
            val grr = protocol == "pckv-grr"
            val below = if (grr) Ratio(padding) * (growth - Ratio(1)) + Ratio(2 * (keys + padding))
            else Ratio(padding) * growth + Ratio(2 * keys)
            val each = (Ratio(size) / below).ceil()
            val dummies = if (grr) 2 * padding else padding
            val keep = size - big(2 * keys - 1 + dummies) * each
            Table(bits, keep, each, each, big(dummies) * each, size - big(2 * keys) * each, 2)
        }
        else -> throw ClientError("protocol must be one of $PROTOCOLS; got another.")
    }
}

/** The epsilon of one report, from the entries that are drawn from, rounded up. */
fun certifiedEpsilon(protocol: String, epsilon: Ratio, keys: Int, padding: Int, bits: Int): Ratio {
    val table = tableFor(protocol, epsilon, keys, padding, bits)
    val worst = if (protocol in SETS) Ratio(ONE.shiftLeft(bits), subsetFor(protocol, epsilon, keys, padding, bits).accept)
    else worstRatio(protocol, table, padding)
    if (worst > growthOf(epsilon)) throw ClientError("epsilon must be large enough for a table of $bits bits; it is not.")
    val scale = Ratio(BigInteger.TEN.pow(15))
    return minOf(Ratio((logUp(worst) * scale).ceil()) / scale, epsilon)
}

private fun worstRatio(protocol: String, table: Table, padding: Int): Ratio {
    if (protocol in JOINT) {
        val sign = Ratio(1) + (Ratio(table.keep, table.each) - Ratio(1)) / Ratio(padding)
        return maxOf(sign, Ratio(table.noneAbsent, table.nonePresent))
    }
    if (table.signs == 1) return maxOf(Ratio(table.keep, table.each), Ratio(table.noneAbsent, table.nonePresent))
    val present = listOf(table.keep, table.opposite, table.nonePresent)
    val turned = listOf(table.opposite, table.keep, table.nonePresent)
    val absent = listOf(table.each, table.each, table.noneAbsent)
    if (protocol == "pckv-ue") {
        val likelihoods = present.zip(absent).map { (x, y) -> Ratio(x, y) } + Ratio(1)
        return likelihoods.max() / likelihoods.min()
    }
    val rows = listOf(present, turned, absent)
    return rows.flatMap { first -> rows.flatMap { second -> first.zip(second).map { (x, y) -> Ratio(x, y) } } }.max()
}

private fun seen(chance: Ratio): BigInteger {
    val entry = (chance * Ratio(ONE.shiftLeft(64))).floor()
    return if (chance.n.signum() == 0) entry else entry.max(ONE)
}

private fun single(bits: Int, keep: BigInteger, opposite: BigInteger, each: BigInteger, signs: Int = 2): Table {
    val size = ONE.shiftLeft(bits)
    return Table(bits, keep, opposite, each, size - keep - opposite, size - big(signs) * each, signs)
}

/** The sign of a value whose place in its range is threshold / 2^53. */
fun signOf(threshold: Long, word: Long) = if (word < threshold) 1 else 2

/** A symbol about one key: 0 nothing, 1 plus, 2 minus. */
fun ternarySymbol(table: Table, state: Int, word: BigInteger): Int = when {
    state == 0 -> if (word < table.each) 1 else if (word < big(table.signs) * table.each) 2 else 0
    word < table.keep -> state
    word < table.keep + table.opposite -> 3 - state
    else -> 0
}

/** One symbol over all keys: 0 nothing, 1 + 2k plus, 2 + 2k minus; null for a dummy. */
fun jointSymbol(table: Table, picked: Pair<Int, Int>?, word: BigInteger): Int {
    if (picked == null) {
        return if (word < table.noneAbsent) 0 else 1 + ((word - table.noneAbsent) / table.each).toInt()
    }
    val own = picked.first * 2 + picked.second
    if (word < table.keep) return own
    if (word < table.keep + table.nonePresent) return 0
    val other = 1 + ((word - table.keep - table.nonePresent) / table.each).toInt()
    return if (other < own) other else other + 1
}

/** One symbol per key; `words` holds bits / 8 rounded up bytes per key, of which the lowest bits count. */
fun unarySymbols(table: Table, keys: Int, picked: Pair<Int, Int>?, words: ByteArray): IntArray {
    val size = (table.bits + 7) / 8
    return IntArray(keys) { key ->
        val word = BigInteger(1, words.copyOfRange(key * size, (key + 1) * size)).mod(ONE.shiftLeft(table.bits))
        ternarySymbol(table, if (picked?.first == key) picked.second else 0, word)
    }
}
