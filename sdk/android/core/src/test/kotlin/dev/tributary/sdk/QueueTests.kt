package dev.tributary.sdk

import java.io.IOException

/** Queueing and sending of events. */
fun queueTests() = Suite("queue").apply {
    test("an event is stored before its future is done, and survives a kill") {
        val bench = Bench()
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        bench.track("a")
        assertEquals(1, bench.queued)
        bench.network.mode = Mode.FINE
        bench.kill()
        bench.world.pass(1_000)
        assertEquals(listOf(listOf("a")), bench.network.batches)
    }
    test("buffers calls made before configure, and keeps their order") {
        val bench = Bench()
        bench.sdk.trackEvent("first")
        bench.sdk.setUserId("u1")
        bench.sdk.trackEvent("second")
        bench.configure()
        bench.world.pass(2_000)
        assertEquals(listOf("configure", "events", "identify", "events"), bench.network.endpoints)
        assertEquals(listOf(listOf("first"), listOf("second")), bench.network.batches)
        val at = bench.network.requests[1].events[0]["timestampMs"] as Long
        assertTrue(Math.abs(at - System.currentTimeMillis()) < 5_000, "time of the call")
    }
    test("drops the oldest of more than 1,000 events before configure, but no other call") {
        val bench = Bench()
        bench.sdk.setConsent(Consent(adUserData = false))
        val first = bench.sdk.trackEvent("e0")
        for (name in names(1_000)) bench.sdk.trackEvent(name)
        assertEquals(null, first.get())
        bench.configure()
        bench.world.pass(10_000)
        assertEquals(names(1_000), bench.network.batches.flatten())
        assertEquals(mapOf("adUserData" to false), bench.network.requests[1].events[0]["consent"].asObject())
    }
    test("sends batches of at most 100 events in order") {
        val bench = Bench()
        bench.configure()
        for (name in names(250)) bench.track(name)
        bench.world.pass(1_000)
        assertEquals(listOf(100, 100, 50), bench.network.batches.map { it.size })
        assertEquals(names(250), bench.network.batches.flatten())
        assertEquals(0, bench.queued)
    }
    test("sends batches of at most 500 kB") {
        val bench = Bench()
        bench.configure()
        for (name in names(40)) bench.track(name, "text" to "ä".repeat(8_000))
        bench.world.pass(1_000)
        assertEquals(listOf(31, 9), bench.network.batches.map { it.size })
        assertTrue(bench.network.requests.all { it.text.toByteArray().size <= 500_200 }, "size of the requests")
    }
    test("events in the same millisecond get increasing times") {
        val bench = Bench()
        bench.configure()
        for (name in names(150)) bench.track(name)
        bench.world.pass(1_000)
        val times = bench.network.requests.flatMap { it.events }.map { it["timestampMs"] as Long }
        assertTrue(times.zipWithNext().all { (a, b) -> b > a }, "increasing")
    }
    test("an event before 2015 has no time") {
        val bench = Bench(World(wall = 5_000))
        bench.configure()
        bench.track("a")
        bench.world.pass(1_000)
        assertEquals(null, bench.network.requests.last().events[0]["timestampMs"])
    }
    test("retries byte for byte with increasing delays") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.mode = Mode.OFFLINE
        bench.track("a", "x" to 0.1)
        bench.world.pass(3_600_000)
        val tries = bench.network.count("events")
        assertTrue(tries in 11..29, "$tries tries")
        bench.network.mode = Mode.FINE
        bench.world.pass(300_000)
        assertEquals(0, bench.queued)
        assertEquals(1, bench.network.requests.filter { it.endpoint == "events" }.map { it.text }.toSet().size)
        val before = bench.network.requests.size
        bench.world.pass(600_000)
        assertEquals(before, bench.network.requests.size, "no requests while the queue is empty")
    }
    test("a new event does not shorten the back-off, but flush does") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.mode = Mode.OFFLINE
        bench.track("a")
        bench.world.pass(60_000)
        val tries = bench.network.count("events")
        bench.track("b")
        bench.world.pass(1_500)
        assertEquals(tries, bench.network.count("events"))
        bench.network.mode = Mode.FINE
        assertEquals(true, bench.wait(bench.sdk.flush()))
    }
    test("a full queue drops the oldest events without revenue first") {
        val bench = Bench()
        bench.options = { queueLimit = 4 }
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        bench.track("paid1", "revenue" to 1, "currency" to "EUR")
        for (name in names(3)) bench.track(name)
        bench.track("paid2", "revenue" to 2, "currency" to "EUR")
        bench.track("e4")
        assertEquals(listOf("queue_full", "queue_full"), bench.codes)
        for (name in listOf("paid3", "paid4", "paid5")) bench.track(name, "revenue" to 3, "currency" to "EUR")
        bench.network.mode = Mode.FINE
        bench.world.pass(10_000)
        assertEquals(listOf(listOf("paid2", "paid3", "paid4", "paid5")), bench.network.batches)
    }
    test("a full disk loses nothing while the app runs") {
        val full = object : MemoryStorage() {
            override fun set(key: String, value: String) = throw IOException("no space left on device")
        }
        val bench = Bench(storage = full)
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        for (name in names(3)) bench.track(name)
        bench.network.mode = Mode.FINE
        bench.world.pass(10_000)
        assertEquals(names(3), bench.network.batches.flatten())
        assertTrue("storage_failed" in bench.codes, "reported")
        assertEquals(1, bench.network.requests.map { it.body["deviceId"] }.toSet().size)
    }
    test("a broken storage does not break the app") {
        val broken = object : MemoryStorage() {
            override fun get(key: String) = throw IOException("broken")
            override fun keys() = throw IOException("broken")
            override fun tryLock() = throw IOException("broken")
            override fun <T> exclusively(task: () -> T) = throw IOException("broken")
        }
        val bench = Bench(storage = broken)
        bench.configure()
        bench.track("a")
        bench.sdk.optOut()
        bench.sdk.eraseMe()
        bench.world.pass(10_000)
        assertEquals(setOf("storage_failed"), bench.codes.toSet())
    }
    test("shutdown keeps the queue for the next configure") {
        val bench = Bench()
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        bench.track("a")
        bench.wait(bench.sdk.shutdown())
        val count = bench.network.requests.size
        bench.world.pass(3_600_000)
        assertEquals(count, bench.network.requests.size)
        bench.network.mode = Mode.FINE
        bench.sdk.trackEvent("b")
        bench.configure()
        bench.world.pass(1_000)
        assertEquals(listOf("a", "b"), bench.network.batches.flatten())
    }
    test("leaves out invalid values, reports them, and sends the event") {
        val bench = Bench()
        bench.configure()
        val cycle = HashMap<String, Any?>()
        cycle["self"] = cycle
        assertEquals(null, bench.track(""))
        bench.track("comma", "revenue" to "9,99", "currency" to "EUR")
        bench.track("euro", "revenue" to 5, "currency" to "Euro")
        bench.track("cycle", "revenue" to "2", "cycle" to cycle)
        bench.track("object", "object" to Any())
        bench.track("long", "text" to "x".repeat(17_000))
        bench.track("x".repeat(300))
        bench.world.pass(1_000)
        val expected = listOf("invalid_name", "invalid_revenue", "invalid_currency", "invalid_params", "invalid_params", "invalid_params")
        assertEquals(expected, bench.codes)
        val sent = bench.network.requests.flatMap { it.events }
        val values = sent.map { listOf(it["revenue"], it["currency"], it["params"]) }
        val none = listOf(null, null, null)
        assertEquals(listOf(listOf(null, "EUR", null), listOf("5", null, null), listOf("2", null, null), none, none, none), values)
        assertEquals(255, (sent[5]["name"] as String).length)
    }
    test("sends a custom event id, and replaces and reports an invalid one") {
        val bench = Bench()
        bench.configure()
        assertEquals("order.1001", bench.track("purchase", "revenue" to 5, eventId = "order.1001"))
        assertEquals("ä".repeat(127), bench.track("purchase", eventId = "ä".repeat(127)))
        for (id in listOf("", "a\u0000b", "ä".repeat(128))) {
            assertTrue(Regex("[0-9a-f-]{36}").matches(bench.track("purchase", eventId = id)!!), "random id")
        }
        bench.world.pass(1_000)
        assertEquals(List(3) { "invalid_event_id" }, bench.codes)
        assertEquals("order.1001", bench.network.requests.last().events[0]["eventId"])
    }
    test("the app may change its parameters after the call") {
        val bench = Bench()
        bench.configure()
        val list = arrayListOf(1)
        val params = hashMapOf<String, Any?>("list" to list)
        bench.sdk.trackEvent("a", params)
        list.add(2)
        params["more"] = true
        bench.world.pass(1_000)
        assertEquals(mapOf<String, Any?>("list" to listOf(1L)), bench.network.requests.last().events[0]["params"].asObject())
    }
    test("global parameters are added to every event; an event's own win; reset clears them") {
        val bench = Bench()
        bench.configure()
        bench.sdk.setGlobalParams(mapOf("a" to 1, "b" to 1, "revenue" to 5))
        bench.track("one", "b" to 2)
        bench.sdk.reset()
        bench.track("two")
        bench.world.pass(1_000)
        val sent = bench.network.requests.flatMap { it.events }
        assertEquals(mapOf<String, Any?>("a" to 1L, "b" to 2L), sent[0]["params"].asObject())
        assertEquals(null, sent[0]["revenue"])
        assertEquals(null, sent[1]["params"])
    }
    test("a throwing callback does not affect the SDK") {
        val bench = Bench()
        bench.configure { onAttribution { throw IllegalStateException("app error") } }
        bench.track("a")
        bench.world.pass(1_000)
        assertEquals(listOf(listOf("a")), bench.network.batches)
    }
    test("requires key and baseUrl") {
        val bench = Bench()
        bench.key = " "
        val error = runCatching { bench.configure() }.exceptionOrNull()
        assertTrue(error is IllegalArgumentException && "key and baseUrl" in error.message!!, "message")
    }
}
