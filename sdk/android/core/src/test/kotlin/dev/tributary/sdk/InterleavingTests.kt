package dev.tributary.sdk

import java.util.Random
import java.util.concurrent.Executor
import java.util.concurrent.Future

/** A server that remembers consent and events, as the real one does. */
private class Ledger {
    val consents = HashMap<String, Consent>()
    val accepted = LinkedHashMap<String, Int>()
    val carried = HashMap<String, Consent>()
    val deviceOf = HashMap<String, String>()
    val erased = HashSet<String>()
    val violations = ArrayList<String>()

    /** Consent on the device when the request in progress was handed over to the network. */
    var inForce = Consent()
    var deviceInForce = ""

    fun answer(request: Recorded): HttpResponse {
        val device = request.body["deviceId"] as String
        if (device in erased && request.endpoint != "erase") violations.add("${request.endpoint} after the erasure")
        when (request.endpoint) {
            "configure" -> consents[device] = Consent.of(request.body["consent"].asObject())
            "erase" -> erased.add(device)
            "events" -> request.events.forEach { store(it, device) }
        }
        return acceptAll(request)
    }

    private fun store(event: Map<String, Any?>, device: String) {
        val id = event["eventId"] as String
        val consent = Consent.of(event["consent"].asObject())
        if (id in accepted) return
        accepted[id] = (accepted[id] ?: 0) + 1
        carried[id] = consent
        deviceOf[id] = device
        val known = consents[device] ?: Consent()
        // What the person has withdrawn, the server must know before the event.
        if (device == deviceInForce && consent.isWithdrawnBy(inForce) && known.isWithdrawnBy(inForce)) {
            violations.add("event with $consent although the device has $inForce and the server knows $known")
        }
    }
}

/** An app that does things in random order. */
private class RandomApp(seed: Int) {
    val random = Random(seed.toLong())
    val ledger = Ledger()
    val world = World()
    val network = Network().apply { answer = { ledger.answer(it) } }
    val storage = MemoryStorage()
    var sdk = TributaryClient()
    var isConfigured = false
    val tracked = LinkedHashMap<String, Future<String?>>()

    /** Consent when an event was tracked, and the consent now. */
    val expected = HashMap<String, Consent>()
    var consent = Consent()
    private var number = 0

    fun configure() {
        if (isConfigured) return
        isConfigured = true
        // A snapshot of what holds when a request leaves.
        val executor = Executor { task ->
            val state = State.of(storage.get("state")!!)!!
            world.network.execute {
                ledger.inForce = state.consent
                ledger.deviceInForce = state.deviceId
                task.run()
            }
        }
        val options = TributaryOptions("pk_live_test", "http://127.0.0.1:9").apply { logLevel = LogLevel.NONE }
        if (random.nextInt(4) == 0) options.consent = randomConsent().also { consent = consent.merge(it) }
        sdk.configure(options, Environment(Device("android"), storage, network, world, executor, { it.run() }, world, random = random))
    }

    fun setConsent() {
        val newer = randomConsent()
        consent = consent.merge(newer)
        sdk.setConsent(newer)
    }

    fun track() {
        val id = "event ${number++}"
        expected[id] = consent
        tracked[id] = sdk.trackEvent("e", null, id)
    }

    /** Kills the process. Calls that were not done are lost. */
    fun kill() {
        world.kill()
        storage.unlock()
        tracked.entries.removeAll { (id, future) -> !future.isDone && expected.remove(id).let { true } }
        consent = storage.get("state")?.let { State.of(it) }?.consent ?: Consent()
        sdk = TributaryClient()
        isConfigured = false
    }

    fun randomMode() = Mode.values()[random.nextInt(Mode.values().size)]

    fun steps() = repeat(random.nextInt(6)) { world.step() }

    fun finish() {
        network.script.clear()
        network.mode = Mode.FINE
        configure()
        world.pass(86_400_000)
    }

    private fun randomConsent(): Consent {
        fun flag() = when (random.nextInt(3)) { 0 -> true; 1 -> false; else -> null }
        val tracking = if (random.nextInt(3) == 0) Tracking.values()[random.nextInt(4)] else null
        return Consent(flag(), flag(), tracking)
    }
}

/** Random orders of calls, requests, faults and kills. */
fun interleavingTests() = Suite("interleavings").apply {
    test("1,000 interleavings of configure, consent, track, flush, restart: no event without its refusal, none lost or doubled") {
        var events = 0
        for (seed in 1..1_000) {
            val app = RandomApp(seed)
            app.world.random = app.random
            repeat(25) {
                when (app.random.nextInt(12)) {
                    0, 1 -> app.configure()
                    2, 3 -> app.setConsent()
                    4, 5, 6 -> app.track()
                    7 -> app.sdk.flush()
                    8 -> app.kill()
                    9 -> app.network.script.add(app.randomMode())
                    10 -> app.world.pass(app.random.nextInt(3_000).toLong())
                    else -> app.network.mode = app.randomMode()
                }
                app.steps()
            }
            app.finish()
            val where = "seed $seed"
            assertEquals(emptyList<String>(), app.ledger.violations, where)
            val recorded = app.tracked.filterValues { it.isDone && it.get() != null }.keys
            assertEquals(recorded, app.ledger.accepted.keys.filter { it in recorded }.toSet(), "$where: lost")
            assertEquals(recorded.toList(), app.ledger.accepted.keys.filter { it in recorded }, "$where: order")
            for (id in recorded) assertEquals(app.expected[id], app.ledger.carried[id], "$where: consent of $id")
            assertEquals(emptyList<String>(), app.storage.keys().filter { it.startsWith("q.") }, "$where: left in the queue")
            events += recorded.size
        }
        assertTrue(events > 3_000, "only $events events")
    }
    test("500 interleavings with opt-out, reset and erasure: nothing after an erasure, nothing while opted out") {
        for (seed in 1..500) {
            val app = RandomApp(seed)
            app.world.random = app.random
            app.configure()
            val refused = HashSet<String>()
            var isOut = false
            repeat(25) {
                when (app.random.nextInt(12)) {
                    0 -> app.sdk.optOut().also { isOut = true }
                    1 -> app.sdk.optIn().also { isOut = false }
                    2 -> app.sdk.reset()
                    3 -> app.sdk.eraseMe()
                    4 -> app.setConsent()
                    5, 6, 7 -> {
                        app.track()
                        if (isOut) refused.add(app.tracked.keys.last())
                    }
                    8 -> {
                        app.world.settle()
                        app.kill()
                        app.configure()
                    }
                    9 -> app.network.script.add(app.randomMode())
                    else -> app.network.mode = app.randomMode()
                }
                app.steps()
            }
            app.finish()
            assertEquals(emptyList<String>(), app.ledger.violations, "seed $seed")
            assertEquals(emptySet<String>(), app.ledger.accepted.keys.filter { it in refused }.toSet(), "seed $seed")
            assertEquals(0, State.of(app.storage.get("state")!!)!!.erasures.size, "seed $seed: erasures left")
        }
    }
}
