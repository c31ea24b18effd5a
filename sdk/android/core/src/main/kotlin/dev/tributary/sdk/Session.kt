package dev.tributary.sdk

/** What the parts of a session share. */
internal class SessionContext(val environment: Environment, val options: TributaryOptions) {
    val vault = Vault(this)
    val store = Store(vault, environment.clock)
    val queue = Queue(this)
    val http = Http(this)

    /** Minimum delay of the next round, as the server asked for it. */
    var retryAfterMs = 0L

    fun report(code: String, message: String, eventId: String? = null) {
        log(LogLevel.WARN, "$code: $message")
        call(options.problemCallback, Problem(code, message, eventId))
    }

    fun debug(message: String) = log(LogLevel.DEBUG, message)

    /** Ends the round. The next one begins after this time at the earliest. */
    fun later(afterMs: Long): Verdict {
        retryAfterMs = afterMs
        return Verdict.LATER
    }

    /** Reports an invalid key: events stay queued, and nothing is sent before the next start. */
    fun reportInvalidKey(): Verdict {
        report("invalid_api_key", "Invalid SDK key. Events stay queued; nothing is sent before the next start.")
        return Verdict.HALT
    }

    /** Calls the app. Its exceptions do not reach the SDK. */
    fun <T> call(callback: Callback<T>?, value: T) {
        if (callback == null) return
        environment.callbacks.execute {
            try {
                callback.call(value)
            } catch (error: Exception) {
                // The receiver of problems must not get its own.
                val isReceiver = callback === options.problemCallback
                if (isReceiver) log(LogLevel.WARN, "onProblem threw $error") else report("callback_failed", "$error")
            }
        }
    }

    private fun log(level: LogLevel, message: String) {
        if (level <= options.logLevel) environment.logger.log(level, message)
    }
}

/** The SDK from `configure` to `shutdown`. All methods run on the scheduler. */
internal class Session(environment: Environment, private val options: TributaryOptions) {
    private val context = SessionContext(environment, options)
    private val store = context.store
    private val queue = context.queue
    private val enrolment = Enrolment(context)
    private val sender = Sender(context, enrolment)
    private val reader = EventReader(context)
    private var lastStamp = 0L

    /** Loads the stored state. */
    fun load() {
        queue.load()
        val state = store.read()
        // A process that was killed may not have deleted them.
        if (state.isErased || state.isOptedOut) queue.clear()
        store.change { it.started(options.deviceId) }
    }

    /** Starts sending. */
    fun start() {
        options.userId?.let { setUserId(it, options.userIdSignature) }
        sender.flush()
    }

    /** Stores an event. Returns its id, or null if it was not recorded. */
    fun track(call: TrackCall): String? {
        val state = store.read()
        if (!state.isRecording) return null
        enrolment.follow(state)
        val event = reader.read(call, stamp(call.at), state.consent, enrolment.globalParams) ?: return null
        queue.add(if ("revenue" in event) REVENUE else EVENT, entryDevice(state), Json.write(event))
        sender.soon(options.flushDelayMs)
        return event["eventId"] as String
    }

    fun setUserId(userId: String?, signature: String?) {
        val state = store.read()
        enrolment.follow(state)
        enrolment.userId = userId
        enrolment.userIdSignature = signature.takeIf { userId != null }
        // A new signature is sent even if the user id is known.
        val user = userId?.let { sha256(if (signature == null) it else "$it\n$signature") }
        if (!state.isRecording || (user == state.user && !store.isProvisional)) return
        val body = mapWithoutNulls("userId" to userId, "userIdSignature" to enrolment.userIdSignature)
        identify(body) { it.copy(user = user) }
    }

    fun setMatching(email: String?, phone: String?) {
        val state = store.read()
        if (!state.isRecording) return
        val hashes = matching(email, phone)
        if ((!email.isNullOrEmpty() && "email" !in hashes) || (!phone.isNullOrEmpty() && "phone" !in hashes)) {
            context.report("invalid_matching", "Invalid email address or phone number; it was left out.")
        }
        if (hashes.all { state.matching[it.key] == it.value }) return
        identify(mapOf("matching" to hashes)) { it.copy(matching = it.matching + hashes) }
    }

    fun setConsent(consent: Consent) {
        val state = store.change {
            val merged = it.consent.merge(consent)
            val isWithdrawn = !it.isOptedOut && it.consent.isWithdrawnBy(merged)
            it.copy(consent = merged, hasUnsentWithdrawal = it.hasUnsentWithdrawal || isWithdrawn)
        }
        enrolment.touch()
        if (state.isRecording) sender.soon(0)
    }

    fun setGlobalParams(params: Map<String, Any?>) {
        enrolment.follow(store.read())
        enrolment.globalParams = params
    }

    fun openUrl(url: String) {
        if (!store.read().isRecording) return
        store.change { if (it.isRecording) it.copy(openedUrl = url, clickId = clickIn(url) ?: it.clickId) else it }
        enrolment.touch()
        sender.soon(0)
    }

    fun getAttribution(timeoutMs: Long): Promise<Attribution?> = enrolment.attribution(timeoutMs)

    fun knownAttribution(): Attribution? = store.read().attribution?.let { Attribution(it) }

    fun getClickId(): String? = store.read().let { it.clickId ?: it.attribution?.get("clickId") as? String }

    fun getDeviceId(): String? = store.read().let { state -> state.deviceId.takeUnless { state.isErased } }

    fun queuedEvents(): Int = queue.eventCount()

    fun flush(): Promise<Boolean> = sender.flush()

    fun optOut() {
        store.change { it.optedOut() }
        enrolment.userId = null
        enrolment.userIdSignature = null
        queue.clear()
        enrolment.resolveWaiters(null)
        sender.flush()
    }

    fun optIn() {
        val state = store.read()
        if (!state.isOptedOut && !state.isErased && !store.isProvisional) return
        if (state.isOptedOut || state.isErased) queue.clear()
        store.change { (if (it.isErased) it.renewed() else it).copy(isOptedOut = false) }
        enrolment.restart()
        sender.flush()
    }

    fun reset() {
        store.change { if (it.isErased) it else it.renewed() }
        enrolment.forgetPerson()
        enrolment.restart()
        sender.soon(0)
    }

    fun eraseMe() {
        if (store.read().isErased) return
        store.change { it.erased() }
        queue.clear()
        enrolment.forgetPerson()
        enrolment.resolveWaiters(null)
        // Erasing is the user's right even if the server disabled the SDK.
        sender.resume()
        sender.flush()
    }

    fun reportListener(error: Exception) = context.report("callback_failed", "$error")

    fun shutdown(): Promise<Unit> = sender.stop().also { enrolment.resolveWaiters(null) }

    /** Queues a change of the identity, ahead of the events that follow, and remembers it. */
    private fun identify(body: Map<String, Any?>, change: (State) -> State) {
        // In this order, a kill in between sends the change twice, instead of never.
        if (body.isNotEmpty()) queue.add(IDENTITY, entryDevice(store.read()), Json.write(body))
        store.change { if (it.isRecording) change(it) else it }
        sender.soon(0)
    }

    /** Returns the device id for a queue entry; null if the stored one could not be read yet. */
    private fun entryDevice(state: State): String? = state.deviceId.takeUnless { store.isProvisional }

    /**
     * Returns the time of an event. Events in the same millisecond, or after a small correction of the clock, get
     * increasing times, because the server's event log is sorted by time. Larger clock changes affect event times.
     */
    private fun stamp(at: Long): Long {
        val now = maxOf(0, at)
        val isCorrection = now <= lastStamp && lastStamp - now < Limits.CORRECTION_MS
        lastStamp = if (isCorrection) lastStamp + 1 else now
        return lastStamp
    }
}
