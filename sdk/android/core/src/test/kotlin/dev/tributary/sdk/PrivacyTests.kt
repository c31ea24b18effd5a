package dev.tributary.sdk

private val REFUSED = mapOf<String, Any?>("adUserData" to false, "adPersonalization" to false)

private fun consents(network: Network) = network.requests.flatMap { it.events }.map { it["consent"].asObject() }

/** Consent, opting out, reset and erasure. */
fun privacyTests() = Suite("privacy").apply {
    test("every event carries the consent in force when it was tracked") {
        val bench = Bench()
        bench.configure()
        bench.track("never asked")
        bench.consent(true)
        bench.track("granted")
        bench.consent(null, false, Tracking.DENIED)
        bench.track("partly refused")
        bench.world.pass(1_000)
        val expected = listOf(
            emptyMap(),
            mapOf("adUserData" to true),
            mapOf("adUserData" to true, "adPersonalization" to false, "tracking" to "denied"),
        )
        assertEquals<List<Map<String, Any?>?>>(expected, consents(bench.network))
    }
    test("while configure is slow, a purchase after a refusal carries the refusal and follows it") {
        // Without providers, the request leaves at once.
        val bench = Bench(platform = "web")
        bench.configure()
        bench.world.stepLocal()
        bench.consent(false)
        bench.track("purchase", "revenue" to 9)
        bench.world.pass(1_000)
        assertEquals(listOf("configure", "configure", "events"), bench.network.endpoints)
        val configured = bench.network.bodies("configure").map { it["consent"].asObject() }
        assertEquals<List<Map<String, Any?>?>>(listOf(emptyMap(), mapOf("adUserData" to false)), configured)
        assertEquals<List<Map<String, Any?>?>>(listOf(mapOf("adUserData" to false)), consents(bench.network))
    }
    test("consent of configure holds from the start, after the calls before it") {
        val bench = Bench()
        bench.sdk.trackEvent("buffered")
        bench.configure { consent = Consent(adUserData = false) }
        bench.track("later")
        bench.world.pass(1_000)
        assertEquals<List<Map<String, Any?>?>>(listOf(emptyMap(), mapOf("adUserData" to false)), consents(bench.network))
        assertEquals<Any?>(mapOf("adUserData" to false), bench.network.bodies("configure").first()["consent"])
    }
    test("an unconfirmed withdrawal holds back events, also after a restart and after many errors") {
        val bench = Bench()
        bench.configure()
        bench.consent(true)
        bench.world.pass(1_000)
        bench.network.mode = Mode.OFFLINE
        bench.track("granted")
        bench.consent(false)
        bench.network.mode = Mode.FINE
        bench.network.answer = { if (it.endpoint == "configure") respond(500, "{}") else acceptAll(it) }
        bench.kill()
        bench.world.pass(3_600_000)
        assertEquals(0, bench.network.count("events"))
        bench.network.answer = ::acceptAll
        bench.world.pass(300_000)
        assertEquals(listOf("configure", "events"), bench.network.endpoints.takeLast(2))
        assertEquals(0, bench.queued)
    }
    test("optOut deletes the queue, tells the server once, and sends nothing afterwards") {
        val bench = Bench()
        bench.configure { userId = "u1" }
        bench.world.pass(1_000)
        bench.network.mode = Mode.OFFLINE
        bench.track("a")
        bench.sdk.optOut()
        bench.world.pass(10)
        assertEquals(0, bench.queued)
        assertEquals(null, bench.track("b"))
        bench.sdk.setUserId("u2")
        bench.sdk.openUrl("https://x/c/1")
        bench.network.mode = Mode.FINE
        val before = bench.network.requests.size
        bench.restart()
        bench.world.pass(86_400_000)
        bench.restart()
        bench.track("c")
        bench.consent(true)
        assertEquals(true, bench.wait(bench.sdk.flush()))
        bench.world.pass(86_400_000)
        val sent = bench.network.requests.drop(before)
        assertEquals(listOf("configure"), sent.map { it.endpoint })
        assertEquals<Any?>(REFUSED, sent[0].body["consent"])
        assertEquals(setOf("deviceId", "platform", "sdkVersion", "consent", "eraseToken"), sent[0].body.keys)
    }
    test("optIn resumes with the same device id and a refused consent") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        val id = bench.wait(bench.sdk.getDeviceId())
        bench.sdk.optOut()
        bench.world.pass(1_000)
        bench.sdk.optIn()
        bench.track("a")
        bench.world.pass(1_000)
        assertEquals(listOf("configure", "configure", "configure", "events"), bench.network.endpoints)
        assertEquals<Any?>(REFUSED, bench.network.requests[2].body["consent"])
        assertEquals<List<Map<String, Any?>?>>(listOf(REFUSED), consents(bench.network))
        assertEquals(setOf<Any?>(id), bench.network.requests.map { it.body["deviceId"] }.toSet())
    }
    test("a device that the server has never heard of opts out and is erased without a request") {
        val bench = Bench()
        bench.sdk.optOut()
        bench.configure()
        bench.world.pass(10_000)
        bench.sdk.eraseMe()
        bench.world.pass(10_000)
        assertEquals(0, bench.network.requests.size)
        assertEquals(null, bench.wait(bench.sdk.getDeviceId()))
    }
    test("reset gives a new device; unsent events keep the old one and do not wait") {
        val bench = Bench()
        bench.configure()
        bench.consent(true)
        bench.sdk.setUserId("u1")
        bench.world.pass(1_000)
        val first = bench.wait(bench.sdk.getDeviceId())
        val token = bench.state.eraseToken
        bench.network.mode = Mode.OFFLINE
        bench.track("old")
        bench.sdk.reset()
        bench.track("new")
        assertEquals(null, bench.state.attribution)
        val second = bench.wait(bench.sdk.getDeviceId())
        bench.network.mode = Mode.FINE
        val before = bench.network.requests.size
        bench.kill()
        bench.world.pass(10_000)
        val sent = bench.network.requests.drop(before)
        assertEquals(listOf("events", "configure", "events"), sent.map { it.endpoint })
        assertEquals(listOf<Any?>(first, second, second), sent.map { it.body["deviceId"] })
        assertEquals(listOf(listOf("old"), emptyList(), listOf("new")), sent.map { it.names })
        assertEquals<Any?>(emptyMap<String, Any?>(), sent[2].events[0]["consent"])
        assertTrue(first != second && token != sent[1].body["eraseToken"] && "userId" !in sent[1].body, "forgotten")
        bench.sdk.setUserId("u1")
        bench.world.pass(1_000)
        assertEquals<Any?>("u1", bench.network.bodies("identify").last()["userId"])
    }
    test("an unsent withdrawal of the old device precedes its events after a reset") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        bench.network.mode = Mode.OFFLINE
        bench.track("granted")
        bench.consent(false)
        bench.sdk.reset()
        bench.world.pass(10)
        val before = bench.network.requests.size
        bench.network.mode = Mode.FINE
        bench.world.pass(60_000)
        val sent = bench.network.requests.drop(before)
        assertEquals(listOf("configure", "events", "configure"), sent.map { it.endpoint })
        assertEquals(sent[0].body["deviceId"], sent[1].body["deviceId"])
        assertEquals<Any?>(mapOf("adUserData" to false), sent[0].body["consent"])
    }
    test("eraseMe asks until the server confirms, also after a kill, and stops recording") {
        val bench = Bench()
        bench.configure()
        bench.consent(true)
        bench.world.pass(1_000)
        val first = bench.state
        bench.track("unsent")
        bench.network.script.addAll(listOf(Mode.OFFLINE, Mode.LOST))
        bench.sdk.eraseMe()
        bench.world.stepLocal()
        assertEquals(0, bench.queued)
        assertEquals(null, bench.track("after"))
        bench.kill()
        bench.track("next start")
        bench.world.pass(60_000)
        val erasures = bench.network.requests.filter { it.endpoint == "erase" }
        assertEquals(3, erasures.size)
        val expected = mapOf<String, Any?>("deviceId" to first.deviceId, "eraseToken" to first.eraseToken)
        assertTrue(erasures.all { it.body == expected }, "the same request")
        assertEquals(listOf("configure", "erase", "erase", "erase", "configure", "events"), bench.network.endpoints)
        assertTrue(bench.state.deviceId != first.deviceId, "another device")
        assertTrue(bench.storage.keys().none { first.deviceId in bench.storage.get(it)!! }, "nothing is left")
    }
    test("after eraseMe, nothing is recorded or sent in this process before optIn") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        bench.sdk.eraseMe()
        bench.world.pass(10_000)
        val count = bench.network.requests.size
        assertEquals(null, bench.track("a"))
        bench.consent(true)
        bench.sdk.setUserId("u")
        bench.world.pass(86_400_000)
        assertEquals(count, bench.network.requests.size)
        assertEquals(null, bench.wait(bench.sdk.getDeviceId()))
        bench.sdk.optIn()
        bench.track("b")
        bench.world.pass(10_000)
        assertEquals(listOf("configure", "events"), bench.network.endpoints.drop(count))
        assertTrue(bench.network.requests.last().body["deviceId"] != bench.network.requests[0].body["deviceId"], "new device")
    }
    test("a rejected erasure is reported and not repeated") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        bench.network.answer = { respond(403, """{"error":{"code":"invalid_erase_token"}}""") }
        bench.sdk.eraseMe()
        bench.world.pass(86_400_000)
        assertEquals(1, bench.network.count("erase"))
        assertEquals(listOf("erase_refused"), bench.codes)
    }
    test("an erasure survives the 404 and 405 of older nodes, and the next device's events do not wait for it") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        val first = bench.state
        var status = 404
        bench.network.answer = { if (it.endpoint == "erase") respond(status, """{"error":{"code":"not_found"}}""") else acceptAll(it) }
        bench.sdk.eraseMe()
        bench.world.pass(10_000)
        assertEquals(false, bench.wait(bench.sdk.flush()))
        bench.restart()
        bench.world.pass(600_000)
        status = 405
        val before = bench.network.count("erase")
        bench.world.pass(600_000)
        assertTrue(bench.network.count("erase") - before in 2..5, "back-off")
        bench.track("next device")
        bench.world.pass(1_000)
        assertEquals(listOf(listOf("next device")), bench.network.batches)
        assertEquals(setOf("wrong_base_url"), bench.codes.toSet())
        bench.network.answer = ::acceptAll
        bench.world.pass(600_000)
        val erasures = bench.network.bodies("erase")
        val expected = mapOf<String, Any?>("deviceId" to first.deviceId, "eraseToken" to first.eraseToken)
        assertTrue(erasures.all { it == expected }, "the same request")
        assertEquals(emptyList<Pledge>(), bench.state.erasures)
        assertEquals(true, bench.wait(bench.sdk.flush()))
        assertEquals(erasures.size, bench.network.count("erase"))
    }
    test("a disabled SDK can still erase the device") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        bench.network.answer = { if (it.endpoint == "erase") acceptAll(it) else respond(403, """{"error":{"code":"sdk_disabled"}}""") }
        bench.track("a")
        bench.world.pass(1_000)
        bench.sdk.eraseMe()
        bench.world.pass(1_000)
        assertEquals(listOf("events", "erase"), bench.network.endpoints.takeLast(2))
    }
    test("a response that arrives after reset does not belong to the new device") {
        val bench = Bench(platform = "web")
        bench.configure()
        bench.sdk.reset()
        bench.world.stepLocal()
        bench.world.pass(10_000)
        val ids = bench.network.bodies("configure").map { it["deviceId"] }
        assertEquals(2, ids.toSet().size)
        assertEquals(bench.state.deviceId, ids.last())
        assertTrue(bench.state.isConfigured, "registered")
    }
    test("two processes share consent, opt-out and device") {
        val bench = Bench()
        bench.configure()
        val other = TributaryClient()
        bench.start(other)
        bench.world.pass(10_000)
        other.setConsent(Consent(adUserData = false))
        bench.world.stepLocal()
        bench.track("a")
        bench.world.pass(10_000)
        assertEquals<List<Map<String, Any?>?>>(listOf(mapOf("adUserData" to false)), consents(bench.network))
        other.optOut()
        bench.world.stepLocal()
        assertEquals(null, bench.track("b"))
        other.optIn()
        other.reset()
        bench.world.stepLocal()
        bench.track("c")
        bench.world.pass(10_000)
        val ofNewDevice = bench.network.requests.filter { it.body["deviceId"] == bench.state.deviceId }
        assertEquals(listOf("configure", "events"), ofNewDevice.map { it.endpoint }.take(2))
        assertEquals(listOf("c"), bench.network.batches.last())
    }
    test("a reset in one process makes the other forget the person") {
        val bench = Bench()
        bench.configure()
        val other = TributaryClient()
        bench.start(other) { userId = "u1" }
        other.setGlobalParams(mapOf("plan" to "pro"))
        other.trackEvent("before")
        bench.world.pass(10_000)
        bench.sdk.reset()
        bench.world.stepLocal()
        bench.sdk.shutdown()
        other.trackEvent("after")
        bench.world.pass(10_000)
        val events = bench.network.requests.flatMap { it.events }
        assertEquals(listOf("before", "after"), events.map { it["name"] })
        assertEquals(listOf(true, false), events.map { it["params"] != null })
        val configured = bench.network.requests.filter { it.endpoint == "configure" && it.body["deviceId"] == bench.state.deviceId }
        assertEquals(listOf<Any?>(null), configured.map { it.body["userId"] })
        other.setUserId("u2")
        bench.world.pass(10_000)
        assertEquals<Any?>("u2", bench.network.bodies("identify").last()["userId"])
    }
    test("opt-out, then reset, both offline: the old device's refusal is sent once, nothing for the new one") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        val first = bench.state.deviceId
        bench.network.mode = Mode.OFFLINE
        bench.sdk.optOut()
        bench.sdk.reset()
        bench.world.pass(1_000)
        val before = bench.network.requests.size
        bench.network.mode = Mode.FINE
        bench.kill()
        bench.world.pass(86_400_000)
        assertEquals(null, bench.track("a"))
        val sent = bench.network.requests.drop(before)
        assertEquals(listOf<Any?>("configure", first, REFUSED), sent.flatMap { listOf(it.endpoint, it.body["deviceId"], it.body["consent"]) })
    }
    test("every configure carries the erase token until a response confirms it, also that of an opt-out") {
        val bench = Bench()
        bench.network.script.addAll(listOf(Mode.OFFLINE, Mode.LOST, Mode.BUSY, Mode.PORTAL))
        bench.configure()
        bench.world.pass(2_000)
        bench.sdk.optOut()
        bench.world.pass(60_000)
        bench.sdk.optIn()
        bench.world.pass(60_000)
        val token = bench.state.eraseToken
        bench.consent(true)
        bench.world.pass(60_000)
        val tokens = bench.network.bodies("configure").map { it["eraseToken"] }
        assertEquals(List<Any?>(tokens.size - 1) { token } + null, tokens)
        assertTrue(tokens.size >= 6, "attempts")
        bench.sdk.eraseMe()
        bench.world.pass(60_000)
        assertEquals<Any?>(token, bench.network.bodies("erase").single()["eraseToken"])
    }
    test("an opt-out outlives an erasure") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(1_000)
        bench.sdk.optOut()
        bench.sdk.eraseMe()
        bench.world.pass(10_000)
        val count = bench.network.requests.size
        bench.restart()
        assertEquals(null, bench.track("a"))
        bench.world.pass(10_000)
        assertEquals(count, bench.network.requests.size)
    }
    for ((name, call) in unreadCalls) {
        test("$name while the stored state cannot be read holds once it can be read") {
            val storage = ForgetfulStorage()
            val bench = Bench(storage = storage)
            bench.configure { consent = Consent(adUserData = true) }
            bench.world.pass(1_000)
            val first = bench.state
            storage.failures = 1_000_000
            bench.restart()
            bench.track("unread", "revenue" to 9)
            call(bench.sdk)
            bench.world.pass(3_600_000)
            assertEquals(1, bench.network.requests.size, "nothing is sent")
            assertEquals(first, State.of(storage.records["state"]!!), "the stored state")
            storage.failures = 0
            bench.world.pass(600_000)
            bench.world.settle()
            val sent = bench.network.requests.drop(1).map { it.endpoint to it.body["consent"].asObject()?.get("adUserData") }
            assertEquals(unreadOutcomes[name], sent.toString())
            val isStoredDevice = bench.network.requests[1].body["deviceId"] == first.deviceId
            assertEquals(name != "reset", isStoredDevice)
            if (name == "eraseMe") assertEquals<Any?>(first.eraseToken, bench.network.bodies("erase").single()["eraseToken"])
        }
    }
    test("a stored opt-out or erasure that cannot be read at the start takes effect when it can be read") {
        for (stop in listOf<(TributaryClient) -> Unit>({ it.optOut() }, { it.eraseMe() })) {
            val storage = ForgetfulStorage()
            val bench = Bench(storage = storage)
            bench.configure()
            bench.world.pass(1_000)
            stop(bench.sdk)
            bench.world.pass(1_000)
            val isOut = bench.state.isOptedOut
            storage.failures = 20
            bench.restart()
            bench.world.pass(3_600_000)
            val id = bench.track("a")
            assertEquals(isOut, id == null)
            assertEquals(false, bench.state.isErased, "a start after an erasure")
        }
    }
}

/** Calls made while the stored state cannot be read, and the requests that follow. */
private val unreadCalls = mapOf<String, (TributaryClient) -> Unit>(
    "optOut" to { it.optOut() },
    "eraseMe" to { it.eraseMe() },
    "a withdrawal" to { it.setConsent(Consent(adUserData = false)) },
    "reset" to { it.reset() },
)
private val unreadOutcomes = mapOf(
    "optOut" to "[(configure, false)]",
    "eraseMe" to "[(erase, null)]",
    "a withdrawal" to "[(configure, false), (events, null)]",
    "reset" to "[(configure, null), (events, null)]",
)
