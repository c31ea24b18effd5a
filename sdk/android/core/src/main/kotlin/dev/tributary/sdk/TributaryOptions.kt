package dev.tributary.sdk

/**
 * Options of `configure`.
 *
 * @property key the app's SDK key, `pk_live_…` or `pk_test_…`
 * @property baseUrl URL of your Tributary server, such as `https://links.example.com`
 */
class TributaryOptions(val key: String, val baseUrl: String) {
    var userId: String? = null

    /** Signature of the user id, computed by your backend. */
    var userIdSignature: String? = null

    /**
     * Your own device id instead of a generated one. Use another one after `reset`: the server keeps the first erase
     * token of a device id, so it would refuse a later `eraseMe`.
     */
    var deviceId: String? = null

    /** Consent that holds from the start. Fields that are null keep their stored value. */
    var consent: Consent? = null

    /** Maximum number of queue entries. */
    var queueLimit: Int = 1_000

    /** How long the SDK collects events for a batch, in milliseconds. */
    var flushDelayMs: Long = 1_000

    var logLevel: LogLevel = LogLevel.WARN

    internal var attributionCallback: Callback<Attribution>? = null
    internal var openedLinkCallback: Callback<OpenedLink>? = null
    internal var problemCallback: Callback<Problem>? = null

    /** Sets the function that is called when the attribution is known, and when it improves. */
    fun onAttribution(callback: Callback<Attribution>) = apply { attributionCallback = callback }

    /** Sets the function that is called when a link opened the app. */
    fun onOpenedLink(callback: Callback<OpenedLink>) = apply { openedLinkCallback = callback }

    /** Sets the function that receives problems: a wrong URL or key, invalid values, rejected events. */
    fun onProblem(callback: Callback<Problem>) = apply { problemCallback = callback }
}
