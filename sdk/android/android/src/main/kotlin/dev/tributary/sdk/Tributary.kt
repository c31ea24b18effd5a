package dev.tributary.sdk

import android.app.Activity
import android.app.Application
import android.content.Context
import android.content.Intent
import android.os.Handler
import android.os.Looper

/**
 * The Tributary SDK for Android.
 *
 * All methods may be called from any thread, also before `configure`, and return at once. A returned [Promise] is done
 * when the call's effect is on disk. No method throws because of network, storage or server errors.
 */
object Tributary {
    private val client = TributaryClient()

    /** One for the process, because its thread never ends. */
    private val scheduler = SystemScheduler()
    private val network = NetworkExecutor()
    private var isWatching = false

    /**
     * Starts the SDK. Call it in `Application.onCreate`. A second call without `shutdown` in between is ignored. Throws
     * [IllegalArgumentException] if the key or the URL is empty.
     */
    @JvmStatic
    fun configure(context: Context, options: TributaryOptions): Promise<Unit> {
        val application = context.applicationContext ?: context
        val loaded = client.configure(options, androidEnvironment(application, scheduler, network))
        watch(application, context as? Activity)
        return loaded
    }

    /** Records an event. The result is its id once it is on disk, or null if it was not recorded. */
    @JvmStatic
    @JvmOverloads
    fun trackEvent(name: String, params: Map<String, *>? = null, eventId: String? = null): Promise<String?> =
        client.trackEvent(name, params, eventId)

    /** Sets your own id for the user, and the signature that your backend computed for it; null after sign-out. */
    @JvmStatic
    @JvmOverloads
    fun setUserId(userId: String?, signature: String? = null): Promise<Unit> = client.setUserId(userId, signature)

    /** Sets the email address and phone number that ad networks match users by. Only hashes leave the device. */
    @JvmStatic
    @JvmOverloads
    fun setAdvancedMatching(email: String?, phone: String? = null): Promise<Unit> =
        client.setAdvancedMatching(email, phone)

    /** Sets the user's consent. Fields that are null stay unchanged. */
    @JvmStatic
    fun setConsent(consent: Consent): Promise<Unit> = client.setConsent(consent)

    /** Sets parameters that are added to every event; an event's own parameters win. Replaces the earlier ones. */
    @JvmStatic
    fun setGlobalParams(params: Map<String, *>?): Promise<Unit> = client.setGlobalParams(params)

    /** Reports the URL of an intent. Call it in `onNewIntent`; the SDK sees the intents that create an activity. */
    @JvmStatic
    fun handleIntent(intent: Intent?) {
        openedUrl(intent)?.let { client.openUrl(it) }
    }

    /** Reports a URL that opened the app. */
    @JvmStatic
    fun openUrl(url: String): Promise<Unit> = client.openUrl(url)

    /** Returns the attribution of the install; null after the timeout, or if the SDK does not record. */
    @JvmStatic
    @JvmOverloads
    fun getAttribution(timeoutMs: Long = 10_000): Promise<Attribution?> = client.getAttribution(timeoutMs)

    /** Calls back on the main thread with the attribution, or with null after ten seconds. */
    @JvmStatic
    fun getAttribution(callback: Callback<Attribution?>) {
        val main = Handler(Looper.getMainLooper())
        client.getAttribution().then { found -> main.post { callback.call(found) } }
    }

    /** Returns the id of the click that led to the app; null if there is none. */
    @JvmStatic
    fun getClickId(): Promise<String?> = client.getClickId()

    /** Returns the device id; null after `eraseMe`. Pass it to your billing provider as `tributaryId`. */
    @JvmStatic
    fun getDeviceId(): Promise<String?> = client.getDeviceId()

    /** Sends the queue now. The result is true if it is empty afterwards. */
    @JvmStatic
    fun flush(): Promise<Boolean> = client.flush()

    /** Stops recording, deletes unsent events and tells the server once that the user refuses. */
    @JvmStatic
    fun optOut(): Promise<Unit> = client.optOut()

    /** Records again after `optOut` or `eraseMe`. The consent stays refused until `setConsent`. */
    @JvmStatic
    fun optIn(): Promise<Unit> = client.optIn()

    /** Forgets the user: new device id, no consent, no user id. Unsent events keep the old device id. */
    @JvmStatic
    fun reset(): Promise<Unit> = client.reset()

    /** Asks the server to erase this device's data, deletes everything stored here, and stops recording. */
    @JvmStatic
    fun eraseMe(): Promise<Unit> = client.eraseMe()

    /** Stops the SDK. The queue stays stored for the next `configure`. */
    @JvmStatic
    fun shutdown(): Promise<Unit> = client.shutdown()

    /** Subscribes to the lifecycle once per process. */
    @Synchronized
    private fun watch(application: Context, activity: Activity?) {
        if (isWatching) return
        isWatching = true
        (application as? Application)?.registerActivityLifecycleCallbacks(Lifecycle(client))
        // This activity was created before the subscription.
        handleIntent(activity?.intent)
        watchNetwork(application, client)
    }
}
