package dev.tributary.sdk

import java.io.IOException

private class TestProviders(
    override val hasInstallReferrer: Boolean = true,
    val referrer: () -> InstallReferrer? = { null },
    val id: () -> String? = { null },
    val agent: () -> String? = { null },
) : Providers() {
    override fun installReferrer() = referrer()
    override fun advertisingId() = id()
    override fun userAgent() = agent()
}

/** The `configure` call: content, timing and response. */
fun enrolmentTests() = Suite("enrolment").apply {
    test("keeps the device id and sends the device data at every start") {
        val bench = Bench()
        bench.configure { userId = "u1" }
        val id = bench.wait(bench.sdk.getDeviceId())!!
        bench.world.pass(0)
        bench.restart()
        bench.world.pass(0)
        assertTrue(Regex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}").matches(id), id)
        val bodies = bench.network.bodies("configure")
        assertEquals(listOf<Any?>(id, id), bodies.map { it["deviceId"] })
        assertEquals(listOf<Any?>("android", "14", "u1"), listOf("platform", "osVersion", "userId").map { bodies[0][it] })
        assertTrue((bodies[0]["sdkVersion"] as String).startsWith("android-"), "version")
    }
    test("sends the erase token until the server has confirmed it") {
        val bench = Bench()
        bench.network.script.addAll(listOf(Mode.OFFLINE, Mode.LOST))
        bench.configure()
        bench.world.pass(10_000)
        bench.restart()
        bench.world.pass(10_000)
        val tokens = bench.network.bodies("configure").map { it["eraseToken"] as String? }
        assertTrue(Regex("[A-Za-z0-9_-]{43}").matches(tokens[0]!!), "base64url of 32 bytes")
        assertEquals(listOf(tokens[0], tokens[0], tokens[0], null), tokens)
    }
    test("events wait for the first configure call, which is sent before them when the network is back") {
        val bench = Bench()
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        bench.track("a")
        bench.world.pass(86_400_000)
        assertEquals(0, bench.network.count("events"))
        bench.network.mode = Mode.FINE
        bench.world.pass(300_000)
        assertEquals(listOf("configure", "events"), bench.network.endpoints.takeLast(2))
    }
    test("events stop waiting after five server errors on configure") {
        val bench = Bench()
        bench.network.answer = { if (it.endpoint == "configure") respond(500, "{}") else acceptAll(it) }
        bench.configure()
        bench.track("a")
        bench.world.pass(600_000)
        assertEquals(List(5) { "configure" } + "events", bench.network.endpoints.take(6))
        assertTrue(bench.network.count("configure") > 5, "configure is still retried")
    }
    test("a permanently rejected configure is not repeated, and events are sent") {
        val bench = Bench()
        bench.network.answer = {
            if (it.endpoint == "configure") respond(422, """{"error":{"code":"validation_failed"}}""") else acceptAll(it)
        }
        bench.configure()
        bench.track("a")
        bench.world.pass(3_600_000)
        assertEquals(listOf("configure", "events"), bench.network.endpoints)
    }
    test("getAttribution waits for the response and works offline at the next start") {
        val bench = Bench()
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        val soon = bench.sdk.getAttribution(1_000)
        bench.world.pass(1_000)
        assertEquals(null, soon.get())
        val waiting = bench.sdk.getAttribution(60_000)
        bench.network.mode = Mode.FINE
        bench.world.pass(30_000)
        assertEquals("organic", waiting.get()!!.network)
        bench.network.mode = Mode.OFFLINE
        bench.restart()
        assertEquals("organic", bench.wait(bench.sdk.getAttribution())!!.network)
    }
    test("calls onAttribution for a better attribution but not for the same one") {
        val bench = Bench()
        val reported = ArrayList<String>()
        bench.options = { onAttribution { reported.add(it.network) } }
        bench.configure()
        bench.world.pass(0)
        bench.restart()
        bench.world.pass(0)
        assertEquals(listOf("organic"), reported)
        bench.network.answer = {
            val better = """{"id":"att_1","network":"network_a","clickId":"c1","confidence":0.5,"campaign":{"name":"x","id":null}}"""
            respond(200, """{"data":{"sdkEnabled":true,"attribution":$better}}""")
        }
        bench.restart()
        bench.world.pass(0)
        assertEquals(listOf("organic", "network_a"), reported)
        assertEquals("c1", bench.wait(bench.sdk.getClickId()))
        val known = bench.wait(bench.sdk.getKnownAttribution())!!
        assertEquals(listOf<Any?>(0.5, mapOf("name" to "x")), listOf(known.confidence, known.campaign))
    }
    test("sends the web view's user agent with a URL that opened the app, and remembers its click id") {
        val bench = Bench()
        var reads = 0
        bench.providers = TestProviders(agent = { reads++; "Mozilla/5.0 (Android)" })
        bench.configure()
        bench.world.pass(0)
        assertEquals(0, reads)
        bench.sdk.openUrl("https://go.example.com/c/spring?x=1&ar_click_id=a%2Db#top")
        bench.world.pass(10)
        val last = bench.network.bodies("configure").last()
        assertEquals<Any?>("https://go.example.com/c/spring?x=1&ar_click_id=a%2Db#top", last["openedUrl"])
        assertEquals<Any?>("Mozilla/5.0 (Android)", last["userAgent"])
        assertEquals("a-b", bench.wait(bench.sdk.getClickId()))
    }
    test("consent controls whether the advertising id is read") {
        val bench = Bench()
        var reads = 0
        bench.providers = TestProviders(id = { reads++; "38400000-8cf0-11bd-b23e-10b96e40000d" })
        bench.configure { consent = Consent(tracking = Tracking.DENIED) }
        bench.world.pass(10)
        assertEquals(0, reads)
        bench.consent(null, tracking = Tracking.AUTHORIZED)
        bench.world.pass(10)
        bench.consent(null, tracking = Tracking.RESTRICTED)
        bench.world.pass(10)
        assertEquals(listOf(null, "38400000-8cf0-11bd-b23e-10b96e40000d", null), bench.network.bodies("configure").map { it["gaid"] })
    }
    test("a refusal while the advertising id is read keeps it on the device; a URL meanwhile gets its user agent") {
        val bench = Bench()
        bench.providers = TestProviders(id = { "38400000-8cf0-11bd-b23e-10b96e40000d" }, agent = { "Mozilla/5.0" })
        bench.configure()
        bench.consent(null, tracking = Tracking.DENIED)
        bench.sdk.openUrl("https://x/c/1")
        bench.world.pass(10)
        val bodies = bench.network.bodies("configure")
        assertTrue(bodies.none { "gaid" in it }, "no id")
        assertEquals(listOf<Any?>("Mozilla/5.0"), bodies.filter { "openedUrl" in it }.map { it["userAgent"] })
    }
    test("reads the install referrer until it is delivered, and reports a failure to the server") {
        val bench = Bench()
        var gives: InstallReferrer? = null
        var calls = 0
        bench.providers = TestProviders(referrer = { calls++; gives ?: throw IOException("store unavailable") })
        bench.configure()
        bench.world.pass(0)
        gives = InstallReferrer("utm_source=x", installBeginAtServerSeconds = 5)
        bench.restart()
        bench.world.pass(0)
        bench.restart()
        bench.world.pass(0)
        val sent = bench.network.bodies("configure").map { it["installReferrer"] }
        val delivered = mapOf("referrer" to "utm_source=x", "installBeginAtServerSeconds" to 5L)
        assertEquals(listOf<Any?>(emptyMap<String, Any?>(), delivered, null), sent)
        assertEquals(2, calls)
    }
    test("a hanging provider times out") {
        val world = World()
        val bench = Bench(world)
        var isHanging = true
        bench.providers = TestProviders(referrer = { null })
        // The executor keeps the first task, as a thread that hangs.
        val hanging = ArrayList<Runnable>()
        val options = TributaryOptions("pk", "http://127.0.0.1:9")
        val executor = java.util.concurrent.Executor { if (isHanging) hanging.add(it) else world.network.execute(it) }
        val environment = Environment(
            Device("android"), bench.storage, bench.network, world, executor, { it.run() }, world, bench.providers,
        )
        bench.sdk.configure(options, environment)
        world.pass(4_900)
        isHanging = false
        assertEquals(0, bench.network.requests.size)
        world.pass(200)
        hanging.forEach { it.run() }
        world.pass(10)
        assertEquals(1, bench.network.count("configure"))
    }
    test("the URL that opened the app survives an offline restart and is sent once") {
        val bench = Bench()
        val opened = ArrayList<String>()
        bench.options = { onOpenedLink { opened.add(it.linkId) } }
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        bench.sdk.openUrl("https://x/c/first")
        bench.world.pass(10)
        bench.network.mode = Mode.FINE
        bench.network.answer = {
            val url = it.body["openedUrl"]
            val link = """{"linkId":"$url","deepLink":null,"customData":{},"queryParams":{}}"""
            val opened = """{"data":{"sdkEnabled":true,"attribution":null,"opened":$link}}"""
            if (url == null) acceptAll(it) else respond(200, opened)
        }
        bench.restart()
        bench.world.pass(10)
        bench.sdk.openUrl("https://x/c/second")
        bench.world.pass(10)
        bench.consent(true)
        bench.world.pass(10)
        assertEquals(listOf("https://x/c/first", "https://x/c/second"), opened)
        assertEquals(null, bench.network.bodies("configure").last()["openedUrl"])
    }
    test("sends e-mail and phone as hashes only, once, ahead of the events that follow") {
        val bench = Bench()
        bench.configure()
        bench.world.pass(0)
        bench.track("before")
        bench.sdk.setAdvancedMatching("Cloudy.SanFrancisco+shopping@gmail.com", "+1 (415) 555-2671")
        bench.sdk.setAdvancedMatching("cloudy.sanfrancisco+shopping@gmail.com", null)
        bench.track("after")
        val stored = bench.storage.keys().joinToString { bench.storage.get(it)!! }
        bench.world.pass(1_000)
        val everything = (bench.network.requests.joinToString { it.text } + stored).lowercase()
        for (clear in listOf("cloudy", "gmail", "4155552671", "555-2671")) assertTrue(clear !in everything, clear)
        assertEquals(listOf("configure", "events", "identify", "events"), bench.network.endpoints)
        val matching = bench.network.requests[2].body["matching"].asObject()!!
        assertEquals(listOf("email", "emailGoogle", "phone", "phoneE164"), matching.keys.toList())
        bench.sdk.setAdvancedMatching("nobody", "")
        bench.world.pass(0)
        assertEquals(listOf("invalid_matching"), bench.codes)
    }
    test("sends the user id when it changes, not at every start, and a signature that arrives later") {
        val bench = Bench()
        bench.configure { userId = "u1" }
        bench.world.pass(1_000)
        bench.restart { userId = "u1" }
        bench.world.pass(1_000)
        bench.sdk.setUserId("u2")
        bench.sdk.setUserId("u2", "s1")
        bench.sdk.setUserId("u2", "s1")
        bench.world.pass(1_000)
        val sent = bench.network.bodies("identify").map { it["userId"] to it["userIdSignature"] }
        assertEquals(listOf<Pair<Any?, Any?>>("u1" to null, "u2" to null, "u2" to "s1"), sent)
        assertTrue(bench.storage.keys().none { "u2" in bench.storage.get(it)!! }, "no clear text is stored after sending")
    }
    test("does not replace the device id after a failed read, and keeps the consent set meanwhile") {
        val storage = ForgetfulStorage()
        val bench = Bench(storage = storage)
        bench.configure()
        val id = bench.wait(bench.sdk.getDeviceId())
        bench.world.pass(0)
        bench.wait(bench.sdk.shutdown())
        storage.failures = 4
        bench.sdk = TributaryClient()
        bench.sdk.setConsent(Consent(adUserData = false))
        bench.sdk.trackEvent("a")
        bench.configure()
        bench.world.pass(10_000)
        assertEquals(id, bench.wait(bench.sdk.getDeviceId()))
        assertEquals(setOf<Any?>(id), bench.network.requests.map { it.body["deviceId"] }.toSet())
        assertEquals(mapOf<String, Any?>("adUserData" to false), bench.network.bodies("configure").last()["consent"].asObject())
        assertEquals(listOf("a"), bench.network.batches.flatten())
    }
    test("an own device id replaces the generated one") {
        val bench = Bench()
        bench.configure { deviceId = "own" }
        bench.track("a")
        bench.world.pass(1_000)
        assertEquals(setOf<Any?>("own"), bench.network.requests.map { it.body["deviceId"] }.toSet())
    }
}
