package dev.tributary.sdk

import java.security.MessageDigest

// Normalises and hashes the email address and phone number on the device. There are four variants, because networks
// require different normalisations. Clear text is never sent.

/** Unicode white space. `isWhitespace` differs in some characters from other implementations of the shared table. */
private fun Char.isBlank(): Boolean =
    this in '\t'..'\r' || this == ' ' || this == '\u0085' || this == '\u00a0' || this == '\u1680' ||
        this in '\u2000'..'\u200a' || this == '\u2028' || this == '\u2029' || this == '\u202f' ||
        this == '\u205f' || this == '\u3000'


private val PHONE = Regex("\\+?[0-9]+")

/** Returns the strings to hash for an email address; empty if it is invalid. */
internal fun normaliseEmail(input: String): Map<String, String> {
    val email = input.trim { it.isBlank() }.lowercase()
    val parts = email.split('@')
    if (email.any { it.isBlank() } || parts.size != 2) return emptyMap()
    val (local, domain) = parts
    // A dot with a character on each side.
    val hasDot = domain.length > 2 && '.' in domain.substring(1, domain.length - 1)
    if (local.isEmpty() || !hasDot) return emptyMap()
    if (domain != "gmail.com" && domain != "googlemail.com") return mapOf("email" to email)
    val plain = local.substringBefore('+').replace(".", "")
    val google = "$plain@$domain"
    if (plain.isEmpty() || google == email) return mapOf("email" to email)
    return mapOf("email" to email, "emailGoogle" to google)
}

/** Returns the strings to hash for a phone number; empty if it is invalid. */
internal fun normalisePhone(input: String): Map<String, String> {
    val number = input.filterNot { it.isBlank() || it in "().-" }
    if (!PHONE.matches(number)) return emptyMap()
    val phone = number.removePrefix("+").trimStart('0')
    if (phone.length !in 8..15) return emptyMap()
    // A single leading zero means a national number without a country code, so there is no E.164 form.
    val isNational = number.startsWith('0') && !number.startsWith("00")
    return if (isNational) mapOf("phone" to phone) else mapOf("phone" to phone, "phoneE164" to "+$phone")
}

/** Returns the hashes of the valid inputs, under the server's field names. */
internal fun matching(email: String?, phone: String?): Map<String, String> {
    val strings = (email?.let { normaliseEmail(it) } ?: emptyMap()) + (phone?.let { normalisePhone(it) } ?: emptyMap())
    return strings.mapValues { sha256(it.value) }
}

/** Returns the SHA-256 of the text as UTF-8, in hexadecimal. */
internal fun sha256(text: String): String {
    val hash = MessageDigest.getInstance("SHA-256").digest(text.toByteArray())
    return hash.joinToString("") { Integer.toHexString((it.toInt() and 0xff) or 0x100).substring(1) }
}
