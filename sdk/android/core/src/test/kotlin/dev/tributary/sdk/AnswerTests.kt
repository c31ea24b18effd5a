package dev.tributary.sdk

private const val OFF = """{"data":{"sdkEnabled":false,"firstOpen":false,"attribution":null,"opened":null,"skan":null}}"""

/** Handling of server responses. */
fun answerTests() = Suite("answers").apply {
    test("ignores the response from a captive portal and reports it once") {
        val bench = Bench()
        bench.network.mode = Mode.PORTAL
        bench.configure()
        bench.track("a")
        bench.world.pass(60_000)
        assertEquals(1, bench.queued)
        assertEquals(listOf("wrong_base_url"), bench.codes)
        bench.network.mode = Mode.FINE
        bench.world.pass(300_000)
        assertEquals(listOf("a"), bench.network.batches.flatten())
    }
    test("honours Retry-After") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.script.add(Mode.BUSY)
        bench.track("a")
        bench.world.pass(1_000)
        bench.world.pass(2_900)
        assertEquals(1, bench.network.count("events"))
        bench.world.pass(200)
        assertEquals(2, bench.network.count("events"))
        assertEquals(0, bench.queued)
    }
    test("sdkEnabled: false stops the SDK until a later start enables it") {
        val bench = Bench()
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        bench.track("before")
        bench.network.answer = { respond(200, OFF) }
        bench.network.mode = Mode.FINE
        assertEquals(false, bench.wait(bench.sdk.flush()))
        assertEquals(null, bench.track("after"))
        assertEquals(null, bench.wait(bench.sdk.getAttribution()))
        assertEquals(0, bench.queued)
        val count = bench.network.requests.size
        bench.world.pass(86_400_000)
        assertEquals(count, bench.network.requests.size)
        bench.restart()
        bench.world.pass(86_400_000)
        assertEquals(count + 1, bench.network.requests.size, "one request at the next start")
        assertEquals(null, bench.track("still"))
        bench.network.answer = ::acceptAll
        bench.restart()
        bench.world.pass(0)
        assertTrue(bench.track("again") != null, "recorded")
        bench.world.pass(1_000)
        assertEquals(listOf(listOf("again")), bench.network.batches)
    }
    test("the events endpoint can disable the SDK as well") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.answer = { respond(403, """{"error":{"code":"sdk_disabled"}}""") }
        bench.track("a")
        bench.world.pass(1_000)
        assertEquals(0, bench.queued)
        assertEquals(null, bench.track("b"))
    }
    test("with an invalid key, keeps all events and sends nothing before the next start") {
        val bench = Bench()
        bench.network.answer = { respond(401, """{"error":{"code":"invalid_api_key"}}""") }
        bench.configure()
        bench.track("a")
        bench.world.pass(3_600_000)
        assertEquals(1, bench.network.requests.size)
        assertEquals(listOf("invalid_api_key"), bench.codes)
        bench.network.answer = ::acceptAll
        bench.restart()
        bench.world.pass(1_000)
        assertEquals(listOf(listOf("a")), bench.network.batches)
    }
    test("drops only the invalid event in a rejected batch") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.answer = {
            if ("e7" in it.names) respond(413, """{"error":{"code":"payload_too_large"}}""") else acceptAll(it)
        }
        for (name in names(12)) bench.track(name)
        bench.world.pass(1_000)
        assertEquals(0, bench.queued)
        assertEquals(listOf("request_refused"), bench.codes)
        val taken = bench.network.batches.filter { "e7" !in it }.flatten()
        assertEquals(names(12) - "e7", taken)
    }
    test("reports a rejected event and does not send it again") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.answer = {
            respond(202, """{"data":[{"status":"rejected","eventId":"x","error":{"details":[{"field":"name","message":"No."}]}}]}""")
        }
        bench.track("a")
        bench.world.pass(1_000)
        assertEquals(listOf("event_rejected", "name: No.", "x"), bench.problems.single().let { listOf(it.code, it.message, it.eventId) })
        assertEquals(0, bench.queued)
    }
    test("pauses for an hour and keeps the queue if the server rejects everything") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.network.answer = { respond(422, """{"error":{"code":"validation_failed"}}""") }
        for (name in names(100)) bench.track(name)
        bench.world.pass(1_800_000)
        assertTrue(bench.network.count("events") < 20, "few requests")
        assertEquals(90, bench.queued)
        bench.network.answer = ::acceptAll
        bench.world.pass(3_600_000)
        assertEquals(0, bench.queued)
    }
    test("ignores a response that does not cover every event") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        val odd = arrayListOf(
            respond(204, ""),
            respond(202, """{"data":[]}"""),
            respond(200, """{"data":{"ok":true}}"""),
            respond(404, "Not found"),
            respond(302, """{"error":{"code":"moved"}}"""),
            respond(404, """{"error":{"code":"not_found"}}"""),
            respond(405, """{"error":{"code":"method_not_allowed"}}"""),
        )
        bench.network.answer = { if (odd.isEmpty()) acceptAll(it) else odd.removeAt(0) }
        bench.track("a")
        bench.track("b")
        bench.world.pass(600_000)
        assertEquals(List(8) { listOf("a", "b") }, bench.network.batches)
        assertEquals(0, bench.queued)
    }
    test("damaged records do not affect other records") {
        val bench = Bench()
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        for (name in names(3)) bench.track(name)
        bench.wait(bench.sdk.shutdown())
        val keys = bench.storage.keys().filter { it.startsWith("q.") }
        bench.storage.set(keys[1], "{damaged")
        bench.storage.set("q.x", "")
        bench.network.mode = Mode.FINE
        bench.restart()
        bench.world.pass(10_000)
        assertEquals(listOf(listOf("e1", "e3")), bench.network.batches)
        bench.storage.set("state", "{damaged")
        bench.restart()
        bench.track("e4")
        bench.world.pass(10_000)
        assertEquals(listOf("e4"), bench.network.batches.last())
    }
}
