package dev.tributary.sdk

import java.util.UUID

/** Arguments of a `trackEvent` call. */
internal class TrackCall(
    val name: String,
    /** A copy of the parameters; null if there are none or they are invalid. */
    val params: Map<String, Any?>?,
    val eventId: String?,
    /** What is wrong with the parameters, if anything. */
    val paramsProblem: String?,
    /** Time of the call. */
    val at: Long,
)

private val AMOUNT_NAMES = setOf("revenue", "currency")

/** Copies the arguments of a call on the app's thread, because the app may change its map afterwards. */
internal fun trackCall(name: String, params: Map<String, *>?, eventId: String?, at: Long): TrackCall {
    var copy: Map<String, Any?>? = null
    var problem: String? = null
    try {
        copy = params?.let { Json.copy(it).asObject() }
    } catch (error: JsonException) {
        problem = "must be serialisable as JSON (${error.message})"
        // The amount is still usable.
        copy = params?.filterKeys { it in AMOUNT_NAMES }?.mapValues { it.value as? Number ?: it.value?.toString() }
    } catch (error: RuntimeException) {
        // The app's map changed while it was copied.
        problem = "cannot be read (${error.javaClass.name})"
    }
    return TrackCall(name, copy, eventId, problem, at)
}

/**
 * Validates a call and returns the event as sent to the server. An event with an invalid name is dropped; invalid
 * revenue or parameters are left out. Both are reported.
 */
internal class EventReader(private val context: SessionContext) {
    fun read(call: TrackCall, timestampMs: Long, consent: Consent, globals: Map<String, Any?>): Map<String, Any?>? {
        if (call.name.isEmpty() || '\u0000' in call.name) {
            val message = "The event name must be a non-empty string without NUL; the event was not recorded."
            context.report("invalid_name", message)
            return null
        }
        val eventId = customId(call.eventId) ?: UUID.randomUUID().toString()
        val name = firstCharacters(call.name, Limits.NAME_CHARACTERS)
        val given = call.params ?: emptyMap()
        val revenue = given["revenue"]?.let { amount(it, eventId) }
        val currency = given["currency"]?.let { currency(it, eventId) }
        call.paramsProblem?.let { reportParams(it, eventId) }
        return mapWithoutNulls(
            "eventId" to eventId,
            "name" to name,
            // Without a plausible time, the server uses the time of arrival.
            "timestampMs" to timestampMs.takeIf { it >= Limits.EARLIEST_MS },
            "revenue" to revenue,
            "currency" to currency,
            "params" to params((globals + given).filterKeys { it !in AMOUNT_NAMES }, eventId),
            "consent" to consent.toMap(),
        )
    }

    /** Returns the custom event id if it is valid. */
    private fun customId(eventId: String?): String? {
        if (eventId == null) return null
        val bytes = eventId.toByteArray().size
        val isValid = bytes in 1..Limits.EVENT_ID_BYTES && '\u0000' !in eventId
        if (isValid) return eventId
        val message = "eventId must be a string of 1 to 255 bytes without NUL; the event is sent with a random id."
        context.report("invalid_event_id", message)
        return null
    }

    private fun amount(value: Any, eventId: String): String? {
        decimal(value)?.let { return it }
        val message = "revenue must be a number or a decimal string such as \"9.99\"; the event is sent without it."
        context.report("invalid_revenue", message, eventId)
        return null
    }

    private fun currency(value: Any, eventId: String): String? {
        currencyCode(value)?.let { return it }
        val message = "currency must be a three-letter code such as EUR; the event is sent without it."
        context.report("invalid_currency", message, eventId)
        return null
    }

    private fun params(params: Map<String, Any?>, eventId: String): Map<String, Any?>? {
        if (params.isEmpty()) return null
        if (Json.write(params).toByteArray().size <= Limits.PARAMS_BYTES) return params
        reportParams("must be at most 16 KiB as JSON", eventId)
        return null
    }

    private fun reportParams(what: String, eventId: String) =
        context.report("invalid_params", "params $what; the event is sent without them.", eventId)
}
