package dev.tributary.sdk

import java.io.File
import java.net.HttpURLConnection
import java.net.URL
import java.net.URLDecoder

private const val DAY = 86_400_000L

/** Tests with the real server: every event arrives exactly once, whatever fails on the way. */
fun serverTests(server: Server) = Suite("server").apply {
    fun bench(app: App, world: World = World(System.currentTimeMillis()), storage: Storage = MemoryStorage()): Bench {
        val bench = Bench(world, storage, Network(UrlTransport()))
        bench.key = app.key
        bench.baseUrl = server.url
        return bench
    }

    fun ids(app: App) = server.events(app).map { it["eventId"] }

    /** Sends until the queue is empty. */
    fun drain(bench: Bench) {
        repeat(20) { if (bench.wait(bench.sdk.flush())) return }
        throw AssertionError("the queue is not empty")
    }

    test("stores events once and in order if responses are lost") {
        val app = server.app()
        val bench = bench(app)
        // Of the first twelve requests, the responses to every second one are lost.
        repeat(12) { bench.network.script.add(if (it % 2 == 0) Mode.LOST else Mode.FINE) }
        bench.configure()
        val ids = (0 until 330).map { bench.track("e$it", "n" to it) }
        drain(bench)
        assertTrue(bench.network.batches.size > 4, "some requests were repeated")
        assertEquals<List<Any?>>(ids, ids(app))
    }
    test("loses nothing during an hour offline and attributes the first launch afterwards") {
        val app = server.app("android" to mapOf("packageName" to "com.example.sdk"))
        val slug = "spring-${System.nanoTime()}"
        server.rest("POST", "/apps/${app.id}/links", mapOf("name" to "Spring", "slug" to slug, "network" to "network_a"))
        val tap = URL("${server.url}/c/$slug?fbclid=abc").openConnection() as HttpURLConnection
        tap.instanceFollowRedirects = false
        val phone = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36"
        tap.setRequestProperty("User-Agent", phone)
        val target = tap.getHeaderField("Location")
        val referrer = URLDecoder.decode(target.substringAfter("referrer=").substringBefore('&'), "UTF-8")

        // The device's clock starts an hour ago, so that it shows the real time at the end.
        val bench = bench(app, World(System.currentTimeMillis() - 3_600_000))
        bench.providers = object : Providers() {
            override val hasInstallReferrer = true
            override fun installReferrer() = InstallReferrer(referrer)
        }
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        val ids = (0 until 60).map { minute -> bench.track("tick", "minute" to minute).also { bench.world.pass(60_000) } }
        assertTrue(bench.network.requests.size < 40, "${bench.network.requests.size} attempts in an hour")
        bench.network.mode = Mode.FINE
        bench.world.pass(300_000)
        assertEquals<List<Any?>>(ids, ids(app))
        assertTrue(server.events(app).all { it["attribution"].asObject()?.get("network") == "network_a" }, "attributed")
        assertEquals("network_a", bench.wait(bench.sdk.getAttribution())!!.network)
    }
    test("stores all events once if the app is killed before sending or before the response") {
        val app = server.app()
        withFolder { folder ->
            fun kill(prefix: String, mode: Mode, word: String) {
                val victim = Victim.start(folder, server.url, app.key, prefix, mode, 5)
                Victim.await(victim, word)
                victim.destroyForcibly().waitFor()
            }
            kill("queued", Mode.OFFLINE, "tracked")
            kill("sent", Mode.LOST, "sent")
            kill("again", Mode.OFFLINE, "tracked")
            val bench = bench(app, storage = FileStorage(folder))
            bench.configure()
            bench.track("last")
            drain(bench)
            val events = server.events(app)
            val names = listOf("queued", "sent", "again").flatMap { prefix -> (1..5).map { "$prefix$it" } }
            assertEquals<List<Any?>>(names + "last", events.map { it["name"] })
            assertEquals(1, events.map { it["deviceId"] }.toSet().size)
        }
    }
    test("sends every event once and in order if the clock changes, even across a restart") {
        val app = server.app()
        val bench = bench(app)
        bench.network.mode = Mode.OFFLINE
        bench.configure()
        val ids = ArrayList<String?>()
        for (step in listOf(0, 2 * DAY, -5 * DAY, 60_000, -500, 3 * DAY)) {
            bench.world.wall += step
            ids.add(bench.track("step $step"))
            ids.add(bench.track("more"))
            bench.world.pass(1_000)
        }
        // Back to before 1970.
        bench.world.wall -= 70 * 365 * DAY
        bench.restart()
        ids.add(bench.track("after the restart"))
        bench.network.mode = Mode.FINE
        drain(bench)
        assertEquals<List<Any?>>(ids, bench.network.requests.flatMap { it.events }.map { it["eventId"] })
        assertEquals(ids.map { it!! }.sorted(), ids(app).map { it as String }.sorted())
    }
    test("two processes send every event once and share the device id") {
        val app = server.app()
        withFolder { folder ->
            val processes = listOf("one", "two").map { Victim.start(folder, server.url, app.key, it, Mode.FINE, 60) }
            processes.forEach { Victim.await(it, "empty") }
            processes.forEach { it.waitFor() }
            val events = server.events(app)
            assertEquals(120, events.size)
            assertEquals(1, events.map { it["deviceId"] }.toSet().size)
            for (prefix in listOf("one", "two")) {
                val own = events.map { it["name"] as String }.filter { it.startsWith(prefix) }
                assertEquals((1..60).map { "$prefix$it" }, own)
            }
        }
    }
    test("revenue, identity and parameters arrive unchanged") {
        val app = server.app()
        val bench = bench(app)
        bench.configure()
        bench.sdk.setUserId("user-42")
        bench.sdk.setAdvancedMatching(" Joe@EXAMPLE.com ", "+1 (415) 555-2671")
        bench.consent(true, tracking = Tracking.DENIED)
        bench.track("purchase", "revenue" to 0.1 + 0.2, "currency" to "eur", "sku" to "coins", "nested" to mapOf("deep" to listOf(1, "ä")))
        drain(bench)
        val event = server.events(app).single()
        assertEquals<Any?>("user-42", event["userId"])
        val revenue = event["revenue"].asObject()!!
        assertEquals(listOf<Any?>(0.3, "EUR"), listOf(revenue["amount"], revenue["currency"]))
        assertEquals<Any?>(mapOf("sku" to "coins", "nested" to mapOf("deep" to listOf(1L, "ä"))), event["params"])
        assertEquals(emptyList<String>(), bench.codes)
    }
    test("every event carries its consent, and a withdrawal is on the server before the events that follow") {
        val app = server.app()
        val bench = bench(app)
        bench.configure()
        bench.consent(true)
        bench.track("granted")
        drain(bench)
        bench.track("still granted")
        bench.consent(false)
        bench.track("refused")
        drain(bench)
        val events = server.events(app)
        assertEquals<List<Any?>>(listOf(true, true, false), events.map { it["consent"].asObject()?.get("adUserData") })
        val sent = bench.network.endpoints.takeLast(2)
        assertEquals(listOf("configure", "events"), sent)
    }
    test("eraseMe erases the device, also if the response is lost, and the next start is another device") {
        val app = server.app()
        val bench = bench(app)
        bench.configure()
        bench.sdk.setUserId("user-42")
        bench.track("before", "note" to "private")
        drain(bench)
        val id = bench.state.deviceId
        bench.network.script.add(Mode.LOST)
        bench.sdk.eraseMe()
        drain(bench)
        assertEquals(2, bench.network.count("erase"))
        val event = server.events(app).single()
        assertTrue((event["deviceId"] as String).startsWith("erased-"), "pseudonym")
        assertEquals(listOf<Any?>(null, null), listOf(event["userId"], event["params"]))
        bench.restart()
        // The log is sorted by time.
        bench.world.wall += 60_000
        bench.track("after")
        drain(bench)
        assertTrue(server.events(app).last()["deviceId"].let { it != id && it == bench.state.deviceId }, "another device")
        assertEquals(emptyList<String>(), bench.codes)
    }
    test("optOut reaches the server, and nothing follows") {
        val app = server.app()
        val bench = bench(app)
        bench.configure()
        bench.track("before")
        drain(bench)
        bench.sdk.optOut()
        drain(bench)
        val count = bench.network.requests.size
        assertEquals(null, bench.track("after"))
        bench.restart()
        bench.world.pass(10_000)
        assertEquals(count, bench.network.requests.size)
        val found = server.rest("GET", "/apps/${app.id}/devices/${bench.state.deviceId}")["data"].asObject()!!
        val consent = found["device"].asObject()!!["consent"].asObject()!!
        assertEquals(listOf<Any?>(false, false), listOf(consent["adUserData"], consent["adPersonalization"]))
    }
    test("sdk.enabled: false stops the SDK, true enables it at the next start") {
        val app = server.app()
        val bench = bench(app)
        bench.configure()
        bench.track("before")
        drain(bench)
        server.rest("PATCH", "/apps/${app.id}", mapOf("sdk" to mapOf("enabled" to false)))
        bench.track("rejected")
        assertEquals(false, bench.wait(bench.sdk.flush()))
        assertEquals(null, bench.track("not even stored"))
        server.rest("PATCH", "/apps/${app.id}", mapOf("sdk" to mapOf("enabled" to true)))
        bench.restart()
        drain(bench)
        // The log is sorted by time.
        bench.world.wall += 60_000
        bench.track("after")
        drain(bench)
        assertEquals<List<Any?>>(listOf("before", "after"), server.events(app).map { it["name"] })
    }
    test("a wrong key is reported, and the events arrive with the right one") {
        val app = server.app()
        val bench = bench(app)
        bench.key = "pk_live_wrong"
        bench.configure()
        bench.track("a")
        assertEquals(false, bench.wait(bench.sdk.flush()))
        assertEquals(listOf("invalid_api_key"), bench.codes)
        bench.key = app.key
        bench.restart()
        drain(bench)
        assertEquals<List<Any?>>(listOf("a"), server.events(app).map { it["name"] })
    }
}
