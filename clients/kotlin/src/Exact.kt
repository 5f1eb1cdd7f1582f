/** Exact numbers: rationals, exponentials and logarithms with a known side, doubles as the ratios they are. */
package sabun

import java.math.BigDecimal
import java.math.BigInteger
import java.math.BigInteger.ONE
import java.math.BigInteger.ZERO

internal val TWO: BigInteger = BigInteger.valueOf(2)
internal fun big(number: Int): BigInteger = BigInteger.valueOf(number.toLong())

/** A rational n / d in lowest terms, d > 0. */
class Ratio(top: BigInteger, bottom: BigInteger = ONE) : Comparable<Ratio> {
    val n: BigInteger
    val d: BigInteger

    init {
        require(bottom.signum() != 0) { "a ratio must not be over zero" }
        val common = top.gcd(bottom) * big(bottom.signum())
        n = top / common
        d = bottom / common
    }

    constructor(whole: Int) : this(big(whole))

    operator fun plus(other: Ratio) = Ratio(n * other.d + other.n * d, d * other.d)
    operator fun minus(other: Ratio) = Ratio(n * other.d - other.n * d, d * other.d)
    operator fun times(other: Ratio) = Ratio(n * other.n, d * other.d)
    operator fun div(other: Ratio) = Ratio(n * other.d, d * other.n)
    override fun compareTo(other: Ratio) = (n * other.d).compareTo(other.n * d)
    override fun equals(other: Any?) = other is Ratio && n == other.n && d == other.d
    override fun hashCode() = n.hashCode() xor d.hashCode()
    override fun toString() = if (d == ONE) "$n" else "$n/$d"

    /** The largest whole number not above. */
    fun floor(): BigInteger = if (n.signum() >= 0) n / d else -((-n + d - ONE) / d)
    fun ceil(): BigInteger = -Ratio(-n, d).floor()

    /** A plain decimal of at most 40 places where it is one, otherwise a ratio; `of` reads it back. */
    fun text(): String {
        var scale = ONE
        for (places in 0..40) {
            if ((n * scale).mod(d).signum() == 0) return BigDecimal(n * scale / d, places).toPlainString()
            scale *= BigInteger.TEN
        }
        return "$n/$d"
    }

    /** The nearest double, ties to even. */
    fun toDouble(): Double {
        if (n.signum() == 0) return 0.0
        val size = n.abs()
        val shift = 55 - (size.bitLength() - d.bitLength())
        val (top, bottom) = if (shift >= 0) size.shiftLeft(shift) to d else size to d.shiftLeft(-shift)
        val (quotient, left) = top.divideAndRemainder(bottom)
        val cut = maxOf(quotient.bitLength() - 53, shift - 1074)
        val half = ONE.shiftLeft(cut - 1)
        val rest = quotient.mod(ONE.shiftLeft(cut))
        var kept = quotient.shiftRight(cut)
        if (rest > half || (rest == half && (left.signum() != 0 || kept.testBit(0)))) kept += ONE
        val double = Math.scalb(kept.toDouble(), cut - shift)
        return if (n.signum() < 0) -double else double
    }

    companion object {
        private val FORM = Regex("([-+]?\\d+)/(\\d+)|[-+]?\\d+(\\.\\d+)?([eE][-+]?\\d{1,4})?")

        /** Reads a decimal or a ratio; null for anything else, or a number of absurd length. */
        fun of(text: String): Ratio? {
            val found = FORM.matchEntire(text)?.takeIf { text.length <= 4000 } ?: return null
            if (found.groupValues[1] != "") {
                val under = BigInteger(found.groupValues[2])
                return if (under.signum() == 0) null else Ratio(BigInteger(found.groupValues[1]), under)
            }
            val number = BigDecimal(text)
            if (Math.abs(number.scale()) > 5000) return null
            val unscaled = number.unscaledValue()
            return if (number.scale() >= 0) Ratio(unscaled, BigInteger.TEN.pow(number.scale()))
            else Ratio(unscaled * BigInteger.TEN.pow(-number.scale()))
        }

        /** A finite double as the ratio it is. */
        fun of(double: Double): Ratio {
            val bits = double.toRawBits()
            val exponent = ((bits shr 52) and 0x7ff).toInt()
            val fraction = bits and ((1L shl 52) - 1)
            val digits = BigInteger.valueOf(if (exponent == 0) fraction else fraction or (1L shl 52))
            val power = maxOf(exponent, 1) - 1075
            val signed = if (bits < 0) -digits else digits
            return if (power >= 0) Ratio(signed.shiftLeft(power)) else Ratio(signed, ONE.shiftLeft(-power))
        }
    }
}

private const val FRACTION = 512

/** A rational not above exp(value), for value >= 0: every step is cut off. */
internal fun expDown(value: Ratio): Ratio {
    val small = (value.n.shiftLeft(FRACTION) / value.d).shiftRight(16)
    var sum = ZERO
    var term = ONE.shiftLeft(FRACTION)
    var i = 1
    while (term.signum() > 0) {
        sum += term
        term = (term * small).shiftRight(FRACTION) / big(i++)
    }
    repeat(16) { sum = (sum * sum).shiftRight(FRACTION) }
    return Ratio(sum, ONE.shiftLeft(FRACTION))
}

/** A rational not below ln(value), for value > 0. */
internal fun logUp(value: Ratio): Ratio {
    val power = value.n.bitLength() - value.d.bitLength()
    val x = if (power >= 0) value.n else value.n.shiftLeft(-power)
    val y = if (power >= 0) value.d.shiftLeft(power) else value.d
    val total = big(power) * twiceArtanh(ONE, big(3)) + twiceArtanh(x - y, x + y)
    return Ratio(total + ONE.shiftLeft(FRACTION - 448), ONE.shiftLeft(FRACTION))
}

private fun twiceArtanh(n: BigInteger, d: BigInteger): BigInteger {
    var power = n.shiftLeft(FRACTION) / d
    val square = (power * power).shiftRight(FRACTION)
    var sum = ZERO
    var i = 1
    while (power.signum() != 0 && power != -ONE) {
        sum += power / big(i)
        power = (power * square).shiftRight(FRACTION)
        i += 2
    }
    return TWO * sum
}
