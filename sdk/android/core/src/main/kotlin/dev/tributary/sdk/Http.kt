package dev.tributary.sdk

/** What a response means. */
internal enum class Kind {
    /** Accepted. */
    DONE,

    /** No response, or a temporary error. The request may have arrived, so it is resent unchanged. */
    LATER,

    /** Permanently rejected. */
    REFUSED,

    /** Invalid SDK key. */
    LOCKED,

    /** The server disabled the SDK. */
    DISABLED,
}

/** Outcome of a request. */
internal class Outcome(
    val kind: Kind,
    /** The data of the response. */
    val data: Any? = null,
    /** The error code of a rejection. */
    val code: String = "",
    /** Whether the server responded, and the time that it asked to wait. */
    val isAnswered: Boolean = true,
    val afterMs: Long = 0,
    /** Whether the response was not Tributary's, or that of a server without this endpoint. */
    val isForeign: Boolean = false,
)

/** HTTP client for the tracking endpoints. */
internal class Http(private val context: SessionContext) {
    private var isForeignReported = false

    /** Sends a request on the network executor and calls back on the scheduler. */
    fun post(endpoint: String, body: String, done: (Outcome) -> Unit) {
        val options = context.options
        val headers = mapOf(
            "Content-Type" to "application/json",
            "X-Tributary-Key" to options.key,
            "X-SDK-Version" to Limits.VERSION,
        )
        val request = HttpRequest("POST", "${options.baseUrl.trimEnd('/')}/api/track/$endpoint", headers, body)
        context.environment.blocking({ it.transport.send(request) }) { response, error ->
            context.debug("$endpoint: ${response?.status ?: error}")
            done(if (response == null) Outcome(Kind.LATER, isAnswered = false) else classify(response))
        }
    }

    /**
     * Classifies a response. Only recognisable Tributary responses count: a captive portal returns 200 for everything,
     * and trusting it would lose events.
     */
    private fun classify(response: HttpResponse): Outcome {
        val status = response.status
        if (status == 204) return Outcome(Kind.DONE)
        val body = Json.readObject(response.body)
        if (status in 200..299) {
            val data = body?.get("data") ?: return foreign()
            return Outcome(Kind.DONE, data)
        }
        if (status >= 500 || status == 429 || status == 408) return Outcome(Kind.LATER, afterMs = retryAfter(response))
        val code = body?.get("error").asObject()?.get("code") as? String
        return when {
            // Tributary does not redirect and has these endpoints. An older node may lack one during an upgrade.
            code == null || status < 400 || status == 404 || status == 405 -> foreign()
            code == "sdk_disabled" -> Outcome(Kind.DISABLED)
            status == 401 -> Outcome(Kind.LOCKED)
            else -> Outcome(Kind.REFUSED, code = code)
        }
    }

    private fun foreign(): Outcome {
        if (!isForeignReported) {
            isForeignReported = true
            val message = "The response is not from Tributary. Check baseUrl (${context.options.baseUrl}). A Wi-Fi " +
                "sign-in page can also be the cause. The SDK keeps trying."
            context.report("wrong_base_url", message)
        }
        return Outcome(Kind.LATER, isAnswered = false, isForeign = true)
    }

    private fun retryAfter(response: HttpResponse): Long {
        val seconds = response.headers["retry-after"]?.trim()?.toDoubleOrNull() ?: return 0
        return if (seconds > 0) minOf(seconds * 1_000, Limits.RETRY_AFTER_MAX_MS.toDouble()).toLong() else 0
    }
}
