package dev.tributary.sdk

import java.security.SecureRandom
import java.util.UUID

/**
 * A request that the server must receive although the device changed or the user opted out: to erase the device, or to
 * record that the user refuses.
 */
internal class Pledge(val deviceId: String, val token: String, val consent: Consent = Consent()) {
    fun toMap() = mapOf("deviceId" to deviceId, "token" to token, "consent" to consent.toMap())

    override fun equals(other: Any?) = other is Pledge && other.toMap() == toMap()

    override fun hashCode() = deviceId.hashCode()
}

/** Everything that the SDK stores besides the queue. One record, so that each change is atomic. */
internal data class State(
    val deviceId: String,
    /** Secret that proves to the server that an erasure comes from this device. */
    val eraseToken: String,
    val isTokenConfirmed: Boolean = false,
    /** Time of the first launch. */
    val firstAt: Long,
    /** Whether a `configure` request was tried, and whether the server has accepted one. */
    val isContacted: Boolean = false,
    val isConfigured: Boolean = false,
    /** Whether the server has received the install referrer. */
    val isReferrerSent: Boolean = false,
    /** Latest URL that the server has not received yet. */
    val openedUrl: String? = null,
    /** Click id in the latest URL that had one. */
    val clickId: String? = null,
    val consent: Consent = Consent(),
    /** Whether the user withdrew a consent and the server has not confirmed it. */
    val hasUnsentWithdrawal: Boolean = false,
    /** Hash of the user id that was last queued, for comparison only. */
    val user: String? = null,
    /** Hashes of the email address and phone number that were last queued. */
    val matching: Map<String, String> = emptyMap(),
    /** False if the server disabled the SDK. */
    val isEnabled: Boolean = true,
    val attribution: Map<String, Any?>? = null,
    val isOptedOut: Boolean = false,
    /** Whether the user erased the device: nothing is recorded before `optIn` or the next start. */
    val isErased: Boolean = false,
    /** Requests that go before all others. */
    val erasures: List<Pledge> = emptyList(),
    val refusals: List<Pledge> = emptyList(),
) {
    /** Whether events are recorded. */
    val isRecording get() = isEnabled && !isOptedOut && !isErased

    /** Returns the state after `reset`: another device in the same installation. */
    fun renewed(): State {
        // Queued events keep the old device id. A withdrawal that the server has not received must precede them.
        val own = if (hasUnsentWithdrawal) listOf(Pledge(deviceId, eraseToken, consent)) else emptyList()
        return create(firstAt).copy(
            isReferrerSent = isReferrerSent,
            isEnabled = isEnabled,
            isOptedOut = isOptedOut,
            erasures = erasures,
            refusals = refusals + own,
        )
    }

    /** Returns the state after `eraseMe`. A device that the server has never heard of needs no request. */
    fun erased(): State {
        val own = if (isContacted) listOf(Pledge(deviceId, eraseToken)) else emptyList()
        return create(firstAt).copy(
            isErased = true,
            // The click of the install would count twice.
            isReferrerSent = isReferrerSent,
            isEnabled = isEnabled,
            isOptedOut = isOptedOut,
            erasures = erasures + own,
            // A refusal after the erasure would register the device again.
            refusals = refusals.filter { it.deviceId != deviceId },
        )
    }

    /** Returns the state after `optOut`. */
    fun optedOut(): State {
        val refused = consent.merge(Consent(adUserData = false, adPersonalization = false))
        val isKnown = isContacted && !isErased && !isOptedOut
        val own = if (isKnown) listOf(Pledge(deviceId, eraseToken, refused)) else emptyList()
        return copy(
            isOptedOut = true,
            consent = refused,
            hasUnsentWithdrawal = false,
            user = null,
            matching = emptyMap(),
            refusals = refusals + own,
        )
    }

    /** Returns the state after a start: another device after an erasure, or the app's own device id. */
    fun started(id: String?): State {
        val base = if (isErased) renewed() else this
        if (id == null || id == base.deviceId) return base
        val hasUnsent = base.hasUnsentWithdrawal
        return base.renewed().copy(deviceId = id, consent = base.consent, hasUnsentWithdrawal = hasUnsent)
    }

    /** The generated functions are large, and `hashCode` would use methods that Android 5 does not have. */
    override fun equals(other: Any?) = other is State && other.toJson() == toJson()

    override fun hashCode() = deviceId.hashCode()

    override fun toString() = toJson()

    fun toJson(): String = Json.write(
        mapWithoutNulls(
            "deviceId" to deviceId,
            "eraseToken" to eraseToken,
            "isTokenConfirmed" to isTokenConfirmed,
            "firstAt" to firstAt,
            "isContacted" to isContacted,
            "isConfigured" to isConfigured,
            "isReferrerSent" to isReferrerSent,
            "openedUrl" to openedUrl,
            "clickId" to clickId,
            "consent" to consent.toMap(),
            "hasUnsentWithdrawal" to hasUnsentWithdrawal,
            "user" to user,
            "matching" to matching,
            "isEnabled" to isEnabled,
            "attribution" to attribution,
            "isOptedOut" to isOptedOut,
            "isErased" to isErased,
            "erasures" to erasures.map { it.toMap() },
            "refusals" to refusals.map { it.toMap() },
        ),
    )

    companion object {
        fun create(now: Long) = State(UUID.randomUUID().toString(), newToken(), firstAt = now)

        /** Reads the stored record; null if it is unreadable. */
        fun of(text: String): State? {
            val map = Json.readObject(text) ?: return null
            fun isSet(name: String) = map[name] == true
            return State(
                deviceId = map["deviceId"] as? String ?: return null,
                eraseToken = map["eraseToken"] as? String ?: newToken(),
                isTokenConfirmed = isSet("isTokenConfirmed"),
                firstAt = (map["firstAt"] as? Number)?.toLong() ?: 0,
                isContacted = isSet("isContacted"),
                isConfigured = isSet("isConfigured"),
                isReferrerSent = isSet("isReferrerSent"),
                openedUrl = map["openedUrl"] as? String,
                clickId = map["clickId"] as? String,
                consent = Consent.of(map["consent"].asObject()),
                hasUnsentWithdrawal = isSet("hasUnsentWithdrawal"),
                user = map["user"] as? String,
                matching = map["matching"].asTexts(),
                isEnabled = map["isEnabled"] != false,
                attribution = map["attribution"].asObject(),
                isOptedOut = isSet("isOptedOut"),
                isErased = isSet("isErased"),
                erasures = pledges(map["erasures"]),
                refusals = pledges(map["refusals"]),
            )
        }

        private fun pledges(value: Any?): List<Pledge> {
            val pledges = ArrayList<Pledge>()
            if (value is List<*>) {
                for (item in value) {
                    val map = item.asObject() ?: continue
                    val consent = Consent.of(map["consent"].asObject())
                    val deviceId = map["deviceId"] as? String ?: continue
                    pledges.add(Pledge(deviceId, map["token"] as? String ?: continue, consent))
                }
            }
            return pledges
        }

        /** 32 random bytes in base64url without padding. */
        private fun newToken(): String {
            val bytes = ByteArray(32).also { SecureRandom().nextBytes(it) }
            return base64Url(bytes)
        }
    }
}
