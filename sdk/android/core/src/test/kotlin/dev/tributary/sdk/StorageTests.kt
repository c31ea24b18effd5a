package dev.tributary.sdk

import java.io.File
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit

/** A temporary folder, deleted afterwards. */
fun <T> withFolder(body: (File) -> T): T {
    val folder = File.createTempFile("tributary-", "").apply { delete() }
    try {
        return body(folder)
    } finally {
        folder.deleteRecursively()
    }
}

/** Files, threads and the scheduler of a real app. */
fun storageTests() = Suite("storage").apply {
    test("files: records, replacement, removal, missing records") {
        withFolder { folder ->
            val storage = FileStorage(folder)
            assertEquals(emptyList<String>(), storage.keys())
            assertEquals(null, storage.get("state"))
            storage.set("state", "a")
            storage.set("state", "ä😀")
            storage.set("q.1.e.x", "b")
            storage.remove("nothing")
            assertEquals("ä😀", FileStorage(folder).get("state"))
            assertEquals(listOf("q.1.e.x", "state"), storage.keys().sorted())
            storage.remove("state")
            assertEquals(null, storage.get("state"))
        }
    }
    test("files: a folder that cannot be created is an IOException") {
        withFolder { folder ->
            folder.writeText("a file")
            val storage = FileStorage(folder)
            for (call in listOf<() -> Any?>({ storage.set("a", "b") }, { storage.tryLock() }, { storage.exclusively { } })) {
                assertTrue(runCatching { call() }.exceptionOrNull() is java.io.IOException, "IOException")
            }
        }
    }
    test("files: one holder of the lock at a time, in the same process too") {
        withFolder { folder ->
            val (one, two) = FileStorage(folder) to FileStorage(folder)
            val lock = one.tryLock()!!
            assertEquals(null, two.tryLock())
            assertEquals(null, one.tryLock())
            lock.close()
            two.tryLock()!!.close()
        }
    }
    test("files: exclusive sections of several threads do not overlap") {
        withFolder { folder ->
            FileStorage(folder).set("count", "0")
            val threads = List(4) {
                Thread {
                    val storage = FileStorage(folder)
                    repeat(25) { storage.exclusively { storage.set("count", (storage.get("count")!!.toInt() + 1).toString()) } }
                }.apply { start() }
            }
            threads.forEach { it.join() }
            assertEquals("100", FileStorage(folder).get("count"))
        }
    }
    test("files: leftovers of killed processes are deleted after an hour") {
        withFolder { folder ->
            val storage = FileStorage(folder).apply { set("a", "b") }
            val old = File(folder, "x.tmp").apply { writeText("x") }
            val new = File(folder, "y.tmp").apply { writeText("y") }
            old.setLastModified(System.currentTimeMillis() - 7_200_000)
            storage.deleteLeftovers()
            assertEquals(listOf(false, true), listOf(old.exists(), new.exists()))
        }
    }
    test("calls from many threads: every event is sent once, on real threads") {
        withFolder { folder ->
            val network = Network()
            val sdk = TributaryClient()
            val options = TributaryOptions("pk", "http://127.0.0.1:9").apply { flushDelayMs = 0; logLevel = LogLevel.NONE }
            val environment = realEnvironment(FileStorage(folder), network)
            val start = CountDownLatch(1)
            val threads = List(4) { thread ->
                Thread {
                    start.await()
                    repeat(50) { sdk.trackEvent("e", null, "$thread-$it") }
                }.apply { start() }
            }
            start.countDown()
            sdk.configure(options, environment)
            threads.forEach { it.join() }
            until("an empty queue") { sdk.flush().get() && sdk.getQueuedEvents().get() == 0 }
            val ids = network.requests.flatMap { it.events }.map { it["eventId"] as String }
            assertEquals(200, ids.size)
            for (thread in 0..3) assertEquals(List(50) { "$thread-$it" }, ids.filter { it.startsWith("$thread-") })
            sdk.shutdown().get()
        }
    }
    test("a listener that blocks on another promise gets an exception, and one that throws does not stop the next") {
        val problems = CopyOnWriteArrayList<Problem>()
        val seen = CopyOnWriteArrayList<String>()
        val sdk = TributaryClient()
        val options = TributaryOptions("pk", "http://127.0.0.1:9").onProblem { problems.add(it) }
        options.logLevel = LogLevel.NONE
        val loaded = sdk.getDeviceId()
        loaded.then { seen.add(runCatching { sdk.flush().get() }.exceptionOrNull()!!.javaClass.simpleName) }
        loaded.then { seen.add(runCatching { sdk.flush().get(1, TimeUnit.HOURS) }.exceptionOrNull()!!.javaClass.simpleName) }
        loaded.then { throw IllegalArgumentException("the app's") }
        loaded.then { seen.add(loaded.get()!!) }
        sdk.configure(options, realEnvironment(MemoryStorage(), Network())).get()
        assertEquals(listOf("IllegalStateException", "IllegalStateException", loaded.get()), seen.toList())
        assertTrue(sdk.flush().get(10, TimeUnit.SECONDS), "the SDK goes on")
        loaded.then { throw IllegalArgumentException("at once") }
        until("both problems") { problems.size == 2 }
        assertEquals(setOf("callback_failed"), problems.map { it.code }.toSet())
        assertTrue("the app's" in problems[0].message, "the cause")
        sdk.shutdown().get()
    }
    test("the listener of a dropped event may wait for another thread that uses the SDK") {
        val sdk = TributaryClient()
        var isFree = false
        sdk.trackEvent("oldest").then {
            val other = Thread { sdk.setConsent(Consent(adUserData = false)) }.apply { isDaemon = true; start() }
            other.join(5_000)
            isFree = !other.isAlive
        }
        repeat(Limits.PENDING_EVENTS) { sdk.trackEvent("e") }
        assertTrue(isFree, "no lock is held")
    }
    test("two instances on one storage send every event once and share the device id") {
        val bench = Bench()
        val other = TributaryClient()
        bench.configure()
        bench.start(other)
        repeat(20) {
            bench.sdk.trackEvent("a$it")
            other.trackEvent("b$it")
        }
        bench.world.pass(60_000)
        val sent = bench.network.batches.flatten()
        assertEquals(40, sent.size)
        assertEquals(40, sent.toSet().size)
        assertEquals(1, bench.network.requests.map { it.body["deviceId"] }.toSet().size)
    }
    test("sends nothing while another process holds the lock, and soon afterwards") {
        val bench = Bench()
        val lock = bench.storage.tryLock()!!
        bench.configure()
        bench.track("a")
        bench.world.pass(60_000)
        assertEquals(0, bench.network.requests.size)
        lock.close()
        bench.world.pass(2_000)
        assertEquals(listOf(listOf("a")), bench.network.batches)
    }
}
