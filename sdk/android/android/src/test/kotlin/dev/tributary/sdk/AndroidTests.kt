package dev.tributary.sdk

import android.app.Activity
import android.app.Application
import android.content.Context
import android.content.Intent
import android.content.ServiceConnection
import android.content.pm.PackageInfo
import android.content.pm.PackageManager
import android.content.res.Resources
import android.net.ConnectivityManager
import android.os.Bundle
import android.os.IBinder
import android.os.Parcel
import android.system.Os
import com.sun.net.httpserver.HttpServer
import java.io.File
import java.io.IOException
import java.net.InetSocketAddress
import java.util.concurrent.CopyOnWriteArrayList

/** A service of Google Play: receives a method's number and arguments, and writes the reply. */
private typealias Service = (Int, Parcel, Parcel) -> Unit

private class FakeContext(private val folder: File) : Context() {
    val services = HashMap<String, Service>()
    val permissions = ArrayList<String>()
    val connectivity = ConnectivityManager()
    var bound = 0

    override fun getApplicationContext(): Context = this
    override fun getPackageName() = "com.example.app"
    override fun getResources() = Resources()
    override fun getNoBackupFilesDir() = folder
    override fun getSystemService(name: String): Any? = if (name == CONNECTIVITY_SERVICE) connectivity else null
    override fun checkCallingOrSelfPermission(permission: String) = if (permission in permissions) PackageManager.PERMISSION_GRANTED else -1

    override fun getPackageManager() = object : PackageManager() {
        override fun getPackageInfo(packageName: String, flags: Int) = PackageInfo().apply {
            versionName = "3.1"
            if (flags == GET_PERMISSIONS) requestedPermissions = permissions.toTypedArray()
        }
    }

    override fun bindService(intent: Intent, connection: ServiceConnection, flags: Int): Boolean {
        bound++
        val service = services[intent.action] ?: return false
        val binder = IBinder { code, data, reply, _ ->
            service(code, data, reply)
            true
        }
        // On a device, the main thread calls this later.
        Thread { connection.onServiceConnected(null, binder) }.start()
        return true
    }

    override fun unbindService(connection: ServiceConnection) {
        bound--
    }
}

private class FakeApplication(base: Context) : Application(base) {
    var callbacks: ActivityLifecycleCallbacks? = null

    override fun getApplicationContext(): Context = this

    override fun registerActivityLifecycleCallbacks(callback: ActivityLifecycleCallbacks) {
        callbacks = callback
    }
}

private const val REFERRER = "com.google.android.finsky.BIND_GET_INSTALL_REFERRER_SERVICE"
private const val ID = "com.google.android.gms.ads.identifier.service.START"
private const val AD_ID = "com.google.android.gms.permission.AD_ID"

private fun playStore(code: Int, data: Parcel, reply: Parcel) {
    assertEquals(1, code)
    assertEquals("com.google.android.finsky.externalreferrer.IGetInstallReferrerService", data.readString())
    assertEquals(1, data.readInt())
    assertEquals("com.example.app", Bundle.CREATOR.createFromParcel(data).getString("package_name"))
    val found = Bundle().apply {
        putString("install_referrer", "utm_source=x")
        putLong("referrer_click_timestamp_seconds", 1)
        putLong("install_begin_timestamp_seconds", 2)
        putLong("referrer_click_timestamp_server_seconds", 3)
        putLong("install_begin_timestamp_server_seconds", 0)
    }
    reply.writeNoException()
    reply.writeInt(1)
    found.writeToParcel(reply, 0)
}

private fun playServices(id: String, isLimited: Boolean): Service = { code, data, reply ->
    assertEquals("com.google.android.gms.ads.identifier.internal.IAdvertisingIdService", data.readString())
    reply.writeNoException()
    if (code == 1) reply.writeString(id) else reply.writeInt(if (isLimited) 1 else 0)
}

/** The Android layer, with stubs of Android's classes. Says nothing about a real device. */
fun androidTests() = Suite("android").apply {
    test("reads the install referrer from Google Play") {
        val context = FakeContext(File("/nonexistent"))
        context.services[REFERRER] = ::playStore
        val found = AndroidProviders(context).installReferrer()!!.toMap()
        val seconds = mapOf("clickAtSeconds" to 1L, "installBeginAtSeconds" to 2L, "clickAtServerSeconds" to 3L)
        assertEquals<Any?>(mapOf("referrer" to "utm_source=x") + seconds, found)
        assertEquals(0, context.bound)
    }
    test("a missing or failing service is an exception, which the SDK ignores, and is unbound") {
        val context = FakeContext(File("/nonexistent"))
        assertTrue(runCatching { AndroidProviders(context).installReferrer() }.exceptionOrNull() is IOException, "missing")
        context.services[REFERRER] = { _, _, reply -> reply.writeInt(-1) }
        assertTrue(runCatching { AndroidProviders(context).installReferrer() }.exceptionOrNull() is SecurityException, "failing")
        assertEquals(0, context.bound)
    }
    test("reads the advertising id only with the permission, and not if the user limits tracking") {
        val context = FakeContext(File("/nonexistent"))
        val id = "38400000-8cf0-11bd-b23e-10b96e40000d"
        fun read(service: Service) = AndroidProviders(context.apply { services[ID] = service }).advertisingId()
        assertEquals(null, read(playServices(id, false)))
        context.permissions.add(AD_ID)
        assertEquals(id, read(playServices(id, false)))
        assertEquals(null, read(playServices(id, true)))
        assertEquals(null, read(playServices("00000000-0000-0000-0000-000000000000", false)))
    }
    test("reads the URL of intents that open one") {
        val url = "https://go.example.com/c/spring"
        assertEquals(url, openedUrl(Intent(Intent.ACTION_VIEW).stubData(url)))
        assertEquals(null, openedUrl(Intent("android.intent.action.MAIN").stubData(url)))
        assertEquals(null, openedUrl(Intent(Intent.ACTION_VIEW).stubData(url).setFlags(Intent.FLAG_ACTIVITY_LAUNCHED_FROM_HISTORY)))
        assertEquals(null, openedUrl(null))
    }
    test("from configure to the request: device data, referrer, deep link, lifecycle and network") {
        val requests = CopyOnWriteArrayList<Recorded>()
        val server = HttpServer.create(InetSocketAddress("127.0.0.1", 0), 0)
        server.createContext("/api/track/") { exchange ->
            val text = exchange.requestBody.readBytes().toString(Charsets.UTF_8)
            val recorded = Recorded(exchange.requestURI.path.substringAfter("/api/track/"), text)
            requests.add(recorded)
            val response = acceptAll(recorded)
            val bytes = response.body.toByteArray()
            exchange.sendResponseHeaders(response.status, if (bytes.isEmpty()) -1 else bytes.size.toLong())
            exchange.responseBody.use { it.write(bytes) }
        }
        server.start()
        try {
            withFolder { folder -> useApp(folder, "http://127.0.0.1:${server.address.port}", requests) }
        } finally {
            server.stop(0)
        }
    }
}

private fun schedulerThreads() = Thread.getAllStackTraces().keys.count { it.name == "tributary" }

/** Returns the number of calls that wait for `configure`. */
private fun waitingCalls(): Int {
    fun field(owner: Any, name: String) = owner.javaClass.getDeclaredField(name).apply { isAccessible = true }.get(owner)
    return (field(field(Tributary, "client"), "pending") as Collection<*>).size
}

private fun useApp(folder: File, url: String, requests: List<Recorded>) {
    val context = FakeContext(folder)
    context.services[REFERRER] = ::playStore
    context.permissions.add("android.permission.ACCESS_NETWORK_STATE")
    val application = FakeApplication(context)
    val activity = Activity(application)
    activity.intent = Intent(Intent.ACTION_VIEW).stubData("https://go.example.com/c/spring?ar_click_id=c1")
    val options = TributaryOptions("pk_live_test", url)
    options.logLevel = LogLevel.NONE
    // Events leave only when something asks for it.
    options.flushDelayMs = 3_600_000
    val syncs = Os.stubSyncs
    Tributary.configure(application, options).get()
    val threads = schedulerThreads()
    application.callbacks!!.onActivityCreated(activity, null)
    application.callbacks!!.onActivityCreated(activity, Bundle())
    assertEquals("organic", Tributary.getAttribution().get()!!.network)
    assertEquals("c1", Tributary.getClickId().get())
    until("the deep link") { requests.any { it.body["openedUrl"] != null } }
    val configured = requests.filter { it.endpoint == "configure" }
    assertEquals(1, configured.count { it.body["openedUrl"] != null })
    val body = configured.first().body
    val names = listOf("platform", "osVersion", "model", "manufacturer", "appVersion", "bundleId")
    assertEquals(listOf<Any?>("android", "14", "Pixel 8", "Google", "3.1", "com.example.app"), names.map { body[it] })
    assertEquals<Any?>(mapOf("width" to 432L, "height" to 960L, "scale" to 2.5), body["screen"])
    assertEquals<Any?>("utm_source=x", configured.mapNotNull { it.body["installReferrer"].asObject()?.get("referrer") }.single())
    assertTrue(configured.first { it.body["openedUrl"] != null }.body["userAgent"] != null, "user agent")

    fun sends(what: String, cause: () -> Unit) {
        Tributary.flush().get()
        Tributary.trackEvent(what).get()
        cause()
        until(what) { requests.any { it.names == listOf(what) } }
    }
    sends("foreground") { application.callbacks!!.onActivityStarted(activity) }
    sends("background") { application.callbacks!!.onActivityStopped(activity) }
    sends("network") { context.connectivity.stubCallback.onAvailable(android.net.Network()) }
    assertTrue(Os.stubSyncs > syncs, "renames are synced")
    repeat(5) { Tributary.configure(application, options).get() }
    Tributary.shutdown().get()
    repeat(5) {
        application.callbacks!!.onActivityStarted(activity)
        context.connectivity.stubCallback.onAvailable(android.net.Network())
        application.callbacks!!.onActivityStopped(activity)
    }
    assertEquals(0, waitingCalls(), "calls after shutdown")
    Tributary.configure(application, options).get()
    Tributary.shutdown().get()
    assertEquals(threads, schedulerThreads(), "one thread for all calls of configure")
    assertEquals(listOf("state"), File(folder, "tributary/records").list()!!.toList())
}
