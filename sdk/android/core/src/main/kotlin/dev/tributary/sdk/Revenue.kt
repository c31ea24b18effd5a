package dev.tributary.sdk

import java.math.BigDecimal
import java.math.BigInteger
import java.math.MathContext
import java.math.RoundingMode

// Parses amounts as exact decimals with the server's rules, so that the server accepts every amount that the SDK
// accepts.

private const val DECIMALS_MAX = 6
private val AMOUNT = Regex("-?[0-9]{1,12}(\\.[0-9]{1,6})?")
private val CURRENCY = Regex("[A-Za-z]{3}")
private val AMOUNT_LIMIT = BigDecimal.ONE.movePointRight(12)

/** Returns the amount as the shortest decimal, such as `9.99`, `-3` or `0.000001`; null if it is invalid. */
internal fun decimal(revenue: Any?): String? = when (revenue) {
    is CharSequence -> if (AMOUNT.matches(revenue)) shortest(BigDecimal(revenue.toString())) else null
    is Number -> exact(revenue)?.let { rounded(it) }
    else -> null
}

/** Returns the decimal that a number is written as. For a float, this is the shortest one that reads as that float. */
private fun exact(number: Number): BigDecimal? = when (number) {
    is BigDecimal -> number
    is BigInteger -> BigDecimal(number)
    is Double -> if (number.isNaN() || number.isInfinite()) null else shortestDouble(number)
    is Float -> if (number.isNaN() || number.isInfinite()) null else BigDecimal(number.toString())
    else -> BigDecimal(number.toLong())
}

/** `Double.toString` does not always give the shortest decimal on older systems. */
private fun shortestDouble(number: Double): BigDecimal {
    val whole = BigDecimal(number)
    for (digits in 15..16) {
        val candidate = whole.round(MathContext(digits, RoundingMode.HALF_EVEN))
        if (candidate.toDouble() == number) return candidate
    }
    return whole.round(MathContext(17, RoundingMode.HALF_EVEN))
}

/** Rounds to six decimals, half to even, which removes float noise as in `9.990000000000002`. */
private fun rounded(amount: BigDecimal): String? {
    // Comparing first avoids the work of writing out a huge exponent.
    if (amount.abs() >= AMOUNT_LIMIT) return null
    val cut = amount.setScale(DECIMALS_MAX, RoundingMode.HALF_EVEN)
    return if (cut.abs() >= AMOUNT_LIMIT) null else shortest(cut)
}

private fun shortest(amount: BigDecimal): String =
    if (amount.signum() == 0) "0" else amount.stripTrailingZeros().toPlainString()

/** Returns the currency code in capitals; null unless it has three letters. */
internal fun currencyCode(text: Any?): String? =
    if (text is CharSequence && CURRENCY.matches(text)) text.toString().uppercase() else null
