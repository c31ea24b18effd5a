package dev.tributary.sdk

import java.io.Closeable
import java.io.IOException
import java.util.Random
import java.util.concurrent.Executor
import java.util.concurrent.Future

/** A manual clock and executor. Timers depend on the elapsed time; the wall clock can be changed separately. */
class World(var wall: Long = 1_760_000_000_000) : Scheduler, Clock {
    private class Timer(val at: Long, val task: Runnable)

    private val tasks = ArrayDeque<Runnable>()
    private val blocking = ArrayDeque<Runnable>()
    private val timers = ArrayList<Timer>()
    private var passed = 0L

    /** Runs requests and providers, in the test's thread. */
    val network = Executor { blocking.addLast(it) }

    /** Chooses between a waiting task and a waiting request; null runs the tasks first. */
    var random: Random? = null

    override fun now() = wall + passed

    override fun execute(task: Runnable) = tasks.addLast(task)

    override fun schedule(delayMs: Long, task: Runnable): Cancellable {
        val timer = Timer(passed + delayMs, task)
        timers.add(timer)
        return Cancellable { timers.remove(timer) }
    }

    /** Runs one waiting task or request. Returns false if nothing waits. */
    fun step(): Boolean {
        val takesRequest = tasks.isEmpty() || (blocking.isNotEmpty() && random?.nextBoolean() == true)
        val task = (if (takesRequest) blocking else tasks).removeFirstOrNull() ?: return false
        task.run()
        return true
    }

    /** Runs tasks only, so that requests stay in flight. */
    fun stepLocal() {
        while (true) (tasks.removeFirstOrNull() ?: return).run()
    }

    fun settle() {
        do {
            val hasRun = step()
        } while (hasRun)
    }

    /** Advances the time, runs due timers in order, and the work that they start. */
    fun pass(ms: Long) {
        val end = passed + ms
        while (true) {
            settle()
            val due = timers.filter { it.at <= end }.minByOrNull { it.at } ?: break
            timers.remove(due)
            passed = maxOf(passed, due.at)
            due.task.run()
        }
        passed = end
        settle()
    }

    /** Ends the process: nothing that waits is run. */
    fun kill() {
        tasks.clear()
        blocking.clear()
        timers.clear()
    }
}

/** A storage in memory. */
open class MemoryStorage : Storage {
    val records = java.util.TreeMap<String, String>()
    private var isLocked = false

    override fun get(key: String) = records[key]

    override fun set(key: String, value: String) {
        records[key] = value
    }

    override fun remove(key: String) {
        records.remove(key)
    }

    override fun keys() = records.keys.toList()

    override fun tryLock(): Closeable? {
        if (isLocked) return null
        isLocked = true
        return Closeable { isLocked = false }
    }

    override fun <T> exclusively(task: () -> T) = task()

    /** A killed process releases its lock. */
    fun unlock() {
        isLocked = false
    }
}

/** A storage whose state cannot be read a number of times. */
class ForgetfulStorage : MemoryStorage() {
    var failures = 0

    override fun get(key: String): String? {
        if (key == "state" && failures-- > 0) throw IOException("temporary failure")
        return super.get(key)
    }
}

/** What the network does with a request. */
enum class Mode {
    FINE,
    OFFLINE,

    /** The request arrives, the response is lost. */
    LOST,

    /** A captive portal responds. */
    PORTAL,

    /** The server returns 503 with Retry-After. */
    BUSY,
}

/** A recorded request. */
class Recorded(val endpoint: String, val text: String) {
    val body: Map<String, Any?> = Json.readObject(text) ?: emptyMap()
    val events: List<Map<String, Any?>> get() = (body["events"] as? List<*>).orEmpty().map { it.asObject()!! }
    val names get() = events.map { it["name"] as String }
}

fun respond(status: Int, text: String, vararg headers: Pair<String, String>) = HttpResponse(status, mapOf(*headers), text)

/** A server that accepts everything. */
fun acceptAll(request: Recorded): HttpResponse = when (request.endpoint) {
    "identify" -> respond(204, "")
    "events" -> {
        val results = request.events.map { mapOf("eventId" to it["eventId"], "status" to "accepted") }
        respond(202, Json.write(mapOf("data" to results)))
    }
    "erase" -> respond(200, """{"data":{"status":"erased"}}""")
    else -> respond(
        200,
        """{"data":{"sdkEnabled":true,"firstOpen":true,"attribution":{"id":"att_1","network":"organic"},"opened":null,"skan":null}}""",
    )
}

/** A network between the SDK and a server. */
class Network(private val forward: Transport? = null) : Transport {
    var mode = Mode.FINE

    /** Modes of the next requests, before `mode` applies. */
    val script = ArrayDeque<Mode>()
    val requests = ArrayList<Recorded>()
    var answer: (Recorded) -> HttpResponse = ::acceptAll

    override fun send(request: HttpRequest): HttpResponse {
        val recorded = Recorded(request.url.substringAfter("/api/track/"), request.body ?: "")
        requests.add(recorded)
        val mode = script.removeFirstOrNull() ?: mode
        when (mode) {
            Mode.OFFLINE -> throw IOException("no network")
            Mode.PORTAL -> return respond(200, "<html>Please sign in to this hotel's Wi-Fi.</html>")
            Mode.BUSY -> return respond(503, """{"error":{"code":"unavailable"}}""", "retry-after" to "3")
            else -> Unit
        }
        val response = forward?.send(request) ?: answer(recorded)
        if (mode == Mode.LOST) throw IOException("connection reset")
        return response
    }

    /** Event names in each request that contains events. */
    val batches get() = requests.filter { it.endpoint == "events" }.map { it.names }

    fun count(endpoint: String) = requests.count { it.endpoint == endpoint }

    fun bodies(endpoint: String) = requests.filter { it.endpoint == endpoint }.map { it.body }

    val endpoints get() = requests.map { it.endpoint }
}

/** An environment with real threads and time. */
fun realEnvironment(storage: Storage, network: Network) = Environment(
    Device("android", osVersion = "14"), storage, network, SystemScheduler(), NetworkExecutor(), { it.run() },
)

/** Jitter-free back-off. */
class FullJitter : Random() {
    override fun nextDouble() = 1.0
}

/** An SDK with a manual clock, network and storage, and a server that accepts everything. */
class Bench(
    val world: World = World(),
    val storage: Storage = MemoryStorage(),
    val network: Network = Network(),
    private val platform: String = "android",
) {
    val problems = ArrayList<Problem>()
    val codes get() = problems.map { it.code }
    var sdk = TributaryClient()
    var providers: Providers = Providers()
    var key = "pk_live_test"
    var baseUrl = "http://127.0.0.1:9"

    /** Changes the options of every start. */
    var options: TributaryOptions.() -> Unit = {}

    fun configure(more: TributaryOptions.() -> Unit = {}) {
        start(sdk, more)
        world.stepLocal()
    }

    fun start(sdk: TributaryClient, more: TributaryOptions.() -> Unit = {}) {
        val options = TributaryOptions(key, baseUrl).onProblem { problems.add(it) }
        options.logLevel = LogLevel.NONE
        this.options(options)
        more(options)
        val device = Device(platform, osVersion = "14")
        val environment = Environment(
            device, storage, network, world, world.network, { it.run() }, world, providers, random = FullJitter(),
        )
        sdk.configure(options, environment)
    }

    /** Restarts the app. */
    fun restart(more: TributaryOptions.() -> Unit = {}) {
        wait(sdk.shutdown())
        sdk = TributaryClient()
        configure(more)
    }

    /** Kills the process and starts another one on the same storage. */
    fun kill(more: TributaryOptions.() -> Unit = {}) {
        world.kill()
        (storage as? MemoryStorage)?.unlock()
        sdk = TributaryClient()
        configure(more)
    }

    fun track(name: String, vararg params: Pair<String, Any?>, eventId: String? = null): String? {
        val future = sdk.trackEvent(name, mapOf(*params).ifEmpty { null }, eventId)
        world.stepLocal()
        return wait(future)
    }

    /** Runs the work until the result is known. */
    fun <T> wait(future: Future<T>): T {
        while (!future.isDone) if (!world.step()) throw AssertionError("nothing left to run")
        return future.get()
    }

    fun consent(adUserData: Boolean?, adPersonalization: Boolean? = null, tracking: Tracking? = null) {
        sdk.setConsent(Consent(adUserData, adPersonalization, tracking))
        world.stepLocal()
    }

    val queued get() = storage.keys().count { it.startsWith("q.") }

    internal val state get() = State.of(storage.get("state")!!)!!
}

fun names(count: Int) = (1..count).map { "e$it" }
