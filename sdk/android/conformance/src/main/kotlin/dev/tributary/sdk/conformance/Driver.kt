package dev.tributary.sdk.conformance

import dev.tributary.sdk.Cancellable
import dev.tributary.sdk.Clock
import dev.tributary.sdk.Consent
import dev.tributary.sdk.Device
import dev.tributary.sdk.Environment
import dev.tributary.sdk.FileStorage
import dev.tributary.sdk.Json
import dev.tributary.sdk.LogLevel
import dev.tributary.sdk.Scheduler
import dev.tributary.sdk.TributaryClient
import dev.tributary.sdk.TributaryOptions
import dev.tributary.sdk.UrlTransport
import dev.tributary.sdk.asObject
import java.io.File
import java.util.concurrent.Executor
import java.util.concurrent.Executors
import java.util.concurrent.Future
import java.util.concurrent.atomic.AtomicInteger

/** A clock and scheduler that stand still between commands. Tasks run on one thread, requests on others. */
private class StandingClock : Scheduler, Clock {
    private class Timer(val at: Long, val task: Runnable)

    private val tasks = Executors.newSingleThreadExecutor { Thread(it).apply { isDaemon = true } }
    private val requests = Executors.newCachedThreadPool { Thread(it).apply { isDaemon = true } }
    private val timers = ArrayList<Timer>()
    private var passed = 0L
    private var wall = System.currentTimeMillis()

    /** Tasks and requests that are waiting or running. */
    private val busy = AtomicInteger()

    val network = Executor { task -> count { requests.execute(it) }(task) }

    override fun now() = synchronized(this) { wall + passed }

    fun set(ms: Long) = synchronized(this) { wall = ms - passed }

    override fun execute(task: Runnable) = count { tasks.execute(it) }(task)

    override fun schedule(delayMs: Long, task: Runnable): Cancellable = synchronized(this) {
        val timer = Timer(passed + delayMs, task)
        timers.add(timer)
        Cancellable { synchronized(this) { timers.remove(timer) } }
    }

    /** Waits until nothing runs. */
    fun settle() {
        while (busy.get() > 0) Thread.sleep(1)
    }

    fun advance(ms: Long) {
        val end = synchronized(this) { passed + ms }
        while (true) {
            settle()
            val due = synchronized(this) {
                val first = timers.filter { it.at <= end }.minByOrNull { it.at }
                if (first != null) {
                    timers.remove(first)
                    passed = maxOf(passed, first.at)
                }
                first
            } ?: break
            execute(due.task)
        }
        synchronized(this) { passed = end }
        settle()
    }

    private fun count(submit: (Runnable) -> Unit): (Runnable) -> Unit = { task ->
        busy.incrementAndGet()
        submit(
            Runnable {
                try {
                    task.run()
                } finally {
                    busy.decrementAndGet()
                }
            },
        )
    }
}

/** Executes the commands of the conformance suite. */
private class Driver(private val folder: File) {
    private val clock = StandingClock()
    private val sdk = TributaryClient()
    private val problems = ArrayList<String>()
    private var isConfigured = false

    fun run(command: Map<String, Any?>): Map<String, Any?> {
        fun text(name: String) = command[name] as? String
        when (val name = text("do")) {
            "configure" -> configure(command)
            "setConsent" -> done(sdk.setConsent(consent(command["consent"])))
            "track" -> {
                val id = sdk.trackEvent(text("name") ?: "", command["params"].asObject(), text("eventId"))
                return mapOf("ok" to true, "eventId" to id.get())
            }
            "setUserId" -> done(sdk.setUserId(text("userId"), text("signature")))
            "setMatching" -> done(sdk.setAdvancedMatching(text("email"), text("phone")))
            "setGlobalParams" -> done(sdk.setGlobalParams(command["params"].asObject()))
            "flush" -> sdk.flush().get()
            "settle" -> clock.settle()
            "advance" -> clock.advance((command["ms"] as Number).toLong())
            "setClock" -> clock.set((command["ms"] as Number).toLong())
            "optOut" -> done(sdk.optOut())
            "optIn" -> done(sdk.optIn())
            "reset" -> done(sdk.reset())
            "eraseMe" -> done(sdk.eraseMe())
            "state" -> return state()
            else -> throw IllegalArgumentException("unknown command $name")
        }
        return mapOf("ok" to true)
    }

    private fun configure(command: Map<String, Any?>) {
        val given = command["options"].asObject() ?: emptyMap()
        (given["now"] as? Number)?.let { clock.set(it.toLong()) }
        val options = TributaryOptions(command["key"] as String, command["baseUrl"] as String)
        options.logLevel = LogLevel.NONE
        given["consent"]?.let { options.consent = consent(it) }
        (given["queueLimit"] as? Number)?.let { options.queueLimit = it.toInt() }
        options.onProblem { synchronized(problems) { problems.add(it.code) } }
        (given["openedUrl"] as? String)?.let { sdk.openUrl(it) }
        val environment = Environment(
            device = Device(given["platform"] as? String ?: "android"),
            storage = FileStorage(folder),
            transport = UrlTransport(),
            scheduler = clock,
            network = clock.network,
            callbacks = { it.run() },
            clock = clock,
        )
        sdk.configure(options, environment).get()
        isConfigured = true
    }

    /** Waits until a call is stored. Before `configure`, calls are only buffered. */
    private fun done(future: Future<*>) {
        if (isConfigured) future.get()
    }

    private fun consent(value: Any?) = Consent.of(value.asObject())

    private fun state(): Map<String, Any?> = mapOf(
        "ok" to true,
        "deviceId" to sdk.getDeviceId().get(),
        "attribution" to sdk.getKnownAttribution().get()?.raw,
        "queued" to sdk.getQueuedEvents().get(),
        "problems" to synchronized(problems) { problems.toList() },
    )
}

fun main() {
    val folder = System.getenv("TRIBUTARY_STORAGE") ?: throw IllegalStateException("TRIBUTARY_STORAGE is not set")
    val driver = Driver(File(folder))
    for (line in generateSequence { readLine() }) {
        val command = Json.readObject(line) ?: emptyMap()
        if (command["do"] == "exit") {
            println("""{"ok":true}""")
            break
        }
        val answer = try {
            driver.run(command)
        } catch (error: Exception) {
            mapOf("ok" to false, "error" to error.toString())
        }
        println(Json.write(answer))
    }
}
