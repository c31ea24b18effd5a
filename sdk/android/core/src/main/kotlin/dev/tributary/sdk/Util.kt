package dev.tributary.sdk

import java.net.URLDecoder

/** Set while a thread calls the listeners of a [Promise]: only there, the app's code runs on the SDK's thread. */
internal val inListener = ThreadLocal<Boolean>()

/** A JSON number. */
internal val NUMBER = Regex("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")

private const val BASE64_URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

/** Returns the bytes in base64url without padding. Java's own encoder needs Android 8. */
internal fun base64Url(bytes: ByteArray): String {
    val out = StringBuilder()
    for (start in bytes.indices step 3) {
        val count = minOf(3, bytes.size - start)
        var group = 0
        for (offset in 0 until 3) {
            group = group shl 8
            if (offset < count) group = group or (bytes[start + offset].toInt() and 0xff)
        }
        for (digit in 0..count) out.append(BASE64_URL[(group shr (18 - 6 * digit)) and 63])
    }
    return out.toString()
}

/** Returns the value if it is an object. */
@Suppress("UNCHECKED_CAST")
internal fun Any?.asObject(): Map<String, Any?>? = this as? Map<String, Any?>

/** Returns the value as a map of strings; other values are left out. */
internal fun Any?.asTexts(): Map<String, String> {
    val texts = LinkedHashMap<String, String>()
    asObject()?.forEach { entry -> (entry.value as? String)?.let { texts[entry.key] = it } }
    return texts
}

/** Returns a map of the entries whose value is set. */
internal fun mapWithoutNulls(vararg entries: Pair<String, Any?>): Map<String, Any?> = withoutNulls(mapOf(*entries))

internal fun withoutNulls(map: Map<String, Any?>): Map<String, Any?> = map.filterValues { it != null }

/** Returns the first characters. Counts code points, so that no surrogate pair is split. */
internal fun firstCharacters(text: String, max: Int): String =
    if (text.codePointCount(0, text.length) <= max) text else text.substring(0, text.offsetByCodePoints(0, max))

/** Returns the click id that a tracking link has put into a URL. */
internal fun clickIn(url: String): String? {
    val query = url.substringBefore('#').substringAfter('?', "")
    val value = query.split('&').find { it.startsWith("ar_click_id=") }?.substringAfter('=') ?: return null
    return try {
        URLDecoder.decode(value, "UTF-8").ifEmpty { null }
    } catch (_: IllegalArgumentException) {
        null
    }
}

/** Returns the kind of a queue entry. */
internal fun kindOf(key: String): Char = key.split('.').getOrNull(2)?.firstOrNull() ?: EVENT

/** Returns the sequence number of a queue entry. */
internal fun sequenceOf(key: String): Long = key.split('.').getOrNull(1)?.toLongOrNull() ?: 0

/** Returns whether consent allows reading the advertising id: opt-in on iOS, opt-out on Android. */
internal fun mayReadAdvertisingId(device: Device, consent: Consent): Boolean = when (device.platform) {
    "ios" -> consent.tracking == Tracking.AUTHORIZED
    "android" -> !consent.refusesTracking
    else -> false
}

/** Runs a blocking task on the network executor. `done` gets its result, or the failure, on the scheduler. */
internal fun <T> Environment.blocking(task: (Environment) -> T, done: (T?, Throwable?) -> Unit) {
    try {
        network.execute {
            var result: T? = null
            var failure: Throwable? = null
            try {
                result = task(this)
            } catch (error: Throwable) {
                failure = error
            }
            scheduler.execute { done(result, failure) }
        }
    } catch (error: RuntimeException) {
        // All threads are busy.
        scheduler.execute { done(null, error) }
    }
}
