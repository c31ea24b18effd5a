package dev.tributary.reactnative

import android.webkit.WebSettings
import com.android.installreferrer.api.InstallReferrerClient
import com.android.installreferrer.api.InstallReferrerStateListener
import com.facebook.react.bridge.Arguments
import com.facebook.react.bridge.Promise
import com.facebook.react.bridge.ReactApplicationContext
import com.facebook.react.bridge.ReactContextBaseJavaModule
import com.facebook.react.bridge.ReactMethod
import com.facebook.react.bridge.WritableMap
import com.google.android.gms.ads.identifier.AdvertisingIdClient
import java.util.concurrent.atomic.AtomicBoolean

/** The id that Google Play returns if the user has deleted the advertising id. */
private const val NO_ID = "00000000-0000-0000-0000-000000000000"

/** Data that only native code can read. A value that is not available is null; faults reject the promise. */
class TributaryModule(private val context: ReactApplicationContext) : ReactContextBaseJavaModule(context) {
    override fun getName(): String = "TributaryReactNative"

    /** Reads the install referrer from Google Play; null if the store cannot be read, so that the SDK asks again. */
    @ReactMethod
    fun installReferrer(promise: Promise) {
        val client = InstallReferrerClient.newBuilder(context).build()
        // The library may call back more than once; a promise accepts one result.
        val isSettled = AtomicBoolean()
        val listener = object : InstallReferrerStateListener {
            override fun onInstallReferrerSetupFinished(responseCode: Int) {
                if (!isSettled.compareAndSet(false, true)) return
                try {
                    val isRead = responseCode == InstallReferrerClient.InstallReferrerResponse.OK
                    promise.resolve(if (isRead) referrer(client) else null)
                } catch (error: Exception) {
                    promise.reject("install_referrer", error)
                } finally {
                    client.endConnection()
                }
            }

            override fun onInstallReferrerServiceDisconnected() {
                if (isSettled.compareAndSet(false, true)) promise.resolve(null)
            }
        }
        try {
            client.startConnection(listener)
        } catch (error: Exception) {
            if (isSettled.compareAndSet(false, true)) promise.reject("install_referrer", error)
        }
    }

    private fun referrer(client: InstallReferrerClient): WritableMap {
        val found = client.installReferrer
        return Arguments.createMap().apply {
            putString("referrer", found.installReferrer)
            putDouble("clickAtSeconds", found.referrerClickTimestampSeconds.toDouble())
            putDouble("installBeginAtSeconds", found.installBeginTimestampSeconds.toDouble())
            putDouble("clickAtServerSeconds", found.referrerClickTimestampServerSeconds.toDouble())
            putDouble("installBeginAtServerSeconds", found.installBeginTimestampServerSeconds.toDouble())
        }
    }

    /** Reads the advertising id, unless the user has limited tracking. */
    @ReactMethod
    fun advertisingId(promise: Promise) {
        // The library refuses the main thread, and module methods must return quickly.
        Thread {
            try {
                val info = AdvertisingIdClient.getAdvertisingIdInfo(context)
                promise.resolve(info.id?.takeUnless { info.isLimitAdTrackingEnabled || it == NO_ID })
            } catch (error: Exception) {
                promise.reject("advertising_id", error)
            }
        }.start()
    }

    /** Returns the user agent of the web view. */
    @ReactMethod
    fun userAgent(promise: Promise) {
        try {
            promise.resolve(WebSettings.getDefaultUserAgent(context))
        } catch (error: Exception) {
            // A device without a web view.
            promise.reject("user_agent", error)
        }
    }
}
