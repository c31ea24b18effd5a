package dev.tributary.sdk

/** Receives a value. */
fun interface Callback<T> {
    fun call(value: T)
}

/** The operating system's answer to the question whether the app may track. */
enum class Tracking(internal val text: String) {
    AUTHORIZED("authorized"),
    DENIED("denied"),
    NOT_DETERMINED("notDetermined"),
    RESTRICTED("restricted"),
    ;

    companion object {
        /** Returns the value with this name in the protocol; null if the name is unknown. */
        @JvmStatic
        fun of(text: String?): Tracking? = values().find { it.text == text }
    }
}

/** The user's consent. Null means that the user was not asked, or, in `setConsent`, that the field stays unchanged. */
data class Consent @JvmOverloads constructor(
    val adUserData: Boolean? = null,
    val adPersonalization: Boolean? = null,
    val tracking: Tracking? = null,
) {
    internal fun merge(newer: Consent) = Consent(
        newer.adUserData ?: adUserData,
        newer.adPersonalization ?: adPersonalization,
        newer.tracking ?: tracking,
    )

    /** Returns whether `newer` refuses something that this consent does not refuse. */
    internal fun isWithdrawnBy(newer: Consent): Boolean =
        (newer.adUserData == false && adUserData != false) ||
            (newer.adPersonalization == false && adPersonalization != false) ||
            (newer.refusesTracking && !refusesTracking)

    internal val refusesTracking get() = tracking == Tracking.DENIED || tracking == Tracking.RESTRICTED

    internal fun toMap(): Map<String, Any?> = mapWithoutNulls(
        "adUserData" to adUserData,
        "adPersonalization" to adPersonalization,
        "tracking" to tracking?.text,
    )

    internal companion object {
        fun of(map: Map<String, Any?>?) = Consent(
            map?.get("adUserData") as? Boolean,
            map?.get("adPersonalization") as? Boolean,
            Tracking.of(map?.get("tracking") as? String),
        )
    }
}

/** Attribution of an install. */
class Attribution internal constructor(internal val raw: Map<String, Any?>) {
    val id: String = text("id") ?: ""
    val network: String = text("network") ?: ""
    val matchType: String? = text("matchType")
    val confidence: Double? = (raw["confidence"] as? Number)?.toDouble()
    val linkId: String? = text("linkId")
    val clickId: String? = text("clickId")

    /** Campaign, ad group, ad and so on, as far as they are known. */
    val campaign: Map<String, String> = raw["campaign"].asTexts()
    val deepLink: String? = text("deepLink")
    val customData: Map<String, String> = raw["customData"].asTexts()
    val queryParams: Map<String, String> = raw["queryParams"].asTexts()
    val reason: String? = text("reason")
    val decidedAt: String? = text("decidedAt")

    private fun text(name: String) = raw[name] as? String

    override fun equals(other: Any?) = other is Attribution && other.raw == raw

    override fun hashCode() = raw.hashCode()

    override fun toString() = "Attribution(network=$network, matchType=$matchType, reason=$reason)"
}

/** A link that opened the app. */
class OpenedLink internal constructor(raw: Map<String, Any?>) {
    val linkId: String = raw["linkId"] as? String ?: ""
    val deepLink: String? = raw["deepLink"] as? String
    val customData: Map<String, String> = raw["customData"].asTexts()
    val queryParams: Map<String, String> = raw["queryParams"].asTexts()
}

/** A problem that the SDK reports to the app. The app does not have to react. */
class Problem @JvmOverloads constructor(val code: String, val message: String, val eventId: String? = null)

/** What the SDK writes to the log: nothing, problems, or also requests and their outcome. */
enum class LogLevel { NONE, WARN, DEBUG }

/** Result of the Play Install Referrer service. */
class InstallReferrer @JvmOverloads constructor(
    val referrer: String?,
    val clickAtSeconds: Long? = null,
    val installBeginAtSeconds: Long? = null,
    val clickAtServerSeconds: Long? = null,
    val installBeginAtServerSeconds: Long? = null,
) {
    internal fun toMap(): Map<String, Any?> = mapWithoutNulls(
        "referrer" to referrer,
        "clickAtSeconds" to clickAtSeconds,
        "installBeginAtSeconds" to installBeginAtSeconds,
        "clickAtServerSeconds" to clickAtServerSeconds,
        "installBeginAtServerSeconds" to installBeginAtServerSeconds,
    )
}

/** Device data. */
class Device @JvmOverloads constructor(
    /** `android`, `ios` or `web`. */
    val platform: String,
    val osVersion: String? = null,
    val model: String? = null,
    val manufacturer: String? = null,
    val appVersion: String? = null,
    val bundleId: String? = null,
    val locale: String? = null,
    val timezone: String? = null,
    /** Size of the screen in density-independent pixels, and its density. */
    val screenWidth: Int = 0,
    val screenHeight: Int = 0,
    val screenScale: Double = 1.0,
) {
    internal fun toMap(): Map<String, Any?> = mapWithoutNulls(
        "platform" to platform,
        "osVersion" to osVersion,
        "model" to model,
        "manufacturer" to manufacturer,
        "appVersion" to appVersion,
        "bundleId" to bundleId,
        "locale" to locale,
        "timezone" to timezone,
        "screen" to if (screenWidth <= 0) null else screen(),
    )

    private fun screen() = mapOf("width" to screenWidth, "height" to screenHeight, "scale" to screenScale)
}
