package dev.tributary.sdk

import android.app.Activity
import android.app.Application
import android.content.Context
import android.content.Intent
import android.content.pm.PackageManager
import android.net.ConnectivityManager
import android.net.Network
import android.net.NetworkCapabilities
import android.net.NetworkRequest
import android.os.Build
import android.os.Bundle
import android.os.Handler
import android.os.Looper
import android.system.ErrnoException
import android.system.Os
import android.system.OsConstants
import android.util.Log
import java.io.File
import java.io.IOException
import java.util.Locale
import java.util.TimeZone
import java.util.concurrent.Executor

/** Returns what the SDK needs from an Android app. */
internal fun androidEnvironment(context: Context, scheduler: Scheduler, network: Executor): Environment {
    // Not part of backups: a restored device id would belong to two devices.
    val storage = FileStorage(File(context.noBackupFilesDir, "tributary")) { syncFolder(it) }
    scheduler.execute { storage.deleteLeftovers() }
    val main = Handler(Looper.getMainLooper())
    return Environment(
        device = androidDevice(context),
        storage = storage,
        transport = UrlTransport(),
        scheduler = scheduler,
        network = network,
        callbacks = { main.post(it) },
        providers = AndroidProviders(context),
        logger = { level, message ->
            if (level == LogLevel.DEBUG) Log.d("Tributary", message) else Log.w("Tributary", message)
        },
    )
}

/** Makes a renamed file durable. */
private fun syncFolder(folder: File) {
    try {
        val descriptor = Os.open(folder.path, OsConstants.O_RDONLY, 0)
        try {
            Os.fsync(descriptor)
        } finally {
            Os.close(descriptor)
        }
    } catch (error: ErrnoException) {
        throw IOException(error)
    }
}

private fun androidDevice(context: Context): Device {
    val metrics = context.resources.displayMetrics
    val density = metrics.density.toDouble().takeIf { it > 0 } ?: 1.0
    return Device(
        platform = "android",
        osVersion = Build.VERSION.RELEASE,
        model = Build.MODEL,
        manufacturer = Build.MANUFACTURER,
        appVersion = appVersion(context),
        bundleId = context.packageName,
        locale = Locale.getDefault().toLanguageTag(),
        timezone = TimeZone.getDefault().id,
        screenWidth = (metrics.widthPixels / density).toInt(),
        screenHeight = (metrics.heightPixels / density).toInt(),
        screenScale = density,
    )
}

private fun appVersion(context: Context): String? = try {
    context.packageManager.getPackageInfo(context.packageName, 0).versionName
} catch (_: PackageManager.NameNotFoundException) {
    null
}

/** Returns the URL that an intent opens; null for other intents, and if the user returned from the list of apps. */
internal fun openedUrl(intent: Intent?): String? {
    if (intent == null || intent.action != Intent.ACTION_VIEW) return null
    if (intent.flags and Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY != 0) return null
    return intent.dataString
}

/** Sends when the app comes to the foreground or leaves it, and reports URLs that open an activity. */
internal class Lifecycle(private val client: TributaryClient) : Application.ActivityLifecycleCallbacks {
    private var visible = 0

    override fun onActivityCreated(activity: Activity, savedInstanceState: Bundle?) {
        // An activity that is created again, for example after a rotation, still has the intent.
        if (savedInstanceState == null) openedUrl(activity.intent)?.let { client.openUrl(it) }
    }

    override fun onActivityStarted(activity: Activity) {
        if (visible++ == 0) flushIfRunning(client)
    }

    override fun onActivityStopped(activity: Activity) {
        // The process may have been started with a visible activity.
        visible = maxOf(0, visible - 1)
        if (visible == 0) flushIfRunning(client)
    }

    override fun onActivityResumed(activity: Activity) = Unit

    override fun onActivityPaused(activity: Activity) = Unit

    override fun onActivitySaveInstanceState(activity: Activity, outState: Bundle) = Unit

    override fun onActivityDestroyed(activity: Activity) = Unit
}

/** Sends the queue. After `shutdown`, calls would wait for the next `configure` and add up. */
private fun flushIfRunning(client: TributaryClient) {
    if (client.isRunning) client.flush()
}

/** Sends when a network becomes available, if the app has the permission to know. */
internal fun watchNetwork(context: Context, client: TributaryClient) {
    val permission = context.checkCallingOrSelfPermission("android.permission.ACCESS_NETWORK_STATE")
    if (permission != PackageManager.PERMISSION_GRANTED) return
    val manager = context.getSystemService(Context.CONNECTIVITY_SERVICE) as? ConnectivityManager ?: return
    val request = NetworkRequest.Builder().addCapability(NetworkCapabilities.NET_CAPABILITY_INTERNET).build()
    val callback = object : ConnectivityManager.NetworkCallback() {
        override fun onAvailable(network: Network) {
            flushIfRunning(client)
        }
    }
    try {
        manager.registerNetworkCallback(request, callback)
    } catch (error: RuntimeException) {
        // Some devices limit the number of callbacks, and Android 11 had a bug in the permission check.
        Log.w("Tributary", "the network is not watched: $error")
    }
}
