package dev.tributary.sdk

import java.io.Closeable
import java.io.IOException
import java.util.Random
import java.util.concurrent.Executor

/** Milliseconds since 1970 by the wall clock. */
fun interface Clock {
    fun now(): Long
}

/** A timer that can be cancelled. */
fun interface Cancellable {
    fun cancel()
}

/** Runs tasks one at a time, in order. All of the SDK's state belongs to this scheduler. */
interface Scheduler : Executor {
    /** Runs a task after this time has passed, whatever the wall clock shows. */
    fun schedule(delayMs: Long, task: Runnable): Cancellable
}

/** Persistent storage of small records. Methods throw [IOException] if the storage fails. */
interface Storage {
    fun get(key: String): String?

    /** Stores a record. It survives a crash and a power cut once the method has returned. */
    fun set(key: String, value: String)

    fun remove(key: String)

    fun keys(): List<String>

    /** Returns the lock for sending, or null while another process or instance holds it. */
    fun tryLock(): Closeable?

    /** Runs a short task that reads and then writes, without interruption by another process or instance. */
    fun <T> exclusively(task: () -> T): T
}

/** An HTTP request. */
class HttpRequest(val method: String, val url: String, val headers: Map<String, String>, val body: String?)

/** An HTTP response. Header names are in lower case. */
class HttpResponse(val status: Int, val headers: Map<String, String>, val body: String)

/** Sends requests. The SDK calls it on the network executor. */
fun interface Transport {
    @Throws(IOException::class)
    fun send(request: HttpRequest): HttpResponse
}

/** Data that only the platform can provide. Methods may block; failures and timeouts are ignored. */
open class Providers {
    /** Whether the platform has an install referrer. */
    open val hasInstallReferrer: Boolean get() = false

    /** The store's install referrer. Called at every start until the server has received it. */
    open fun installReferrer(): InstallReferrer? = null

    /** The advertising id. Called only if the user's consent allows it. */
    open fun advertisingId(): String? = null

    /** User agent of the web view. Called when a URL opened the app, because some ad networks require it. */
    open fun userAgent(): String? = null
}

/** Writes messages to the platform's log. */
fun interface Logger {
    fun log(level: LogLevel, message: String)
}

/** Everything that the SDK needs from its surroundings. Tests replace it. */
class Environment(
    val device: Device,
    val storage: Storage,
    val transport: Transport,
    val scheduler: Scheduler,
    /** Runs requests and providers, which may block. */
    val network: Executor,
    /** Runs the app's callbacks. */
    val callbacks: Executor,
    val clock: Clock = Clock { System.currentTimeMillis() },
    val providers: Providers = Providers(),
    val logger: Logger = Logger { _, _ -> },
    /** Source of the jitter of the back-off. */
    val random: Random = Random(),
)
