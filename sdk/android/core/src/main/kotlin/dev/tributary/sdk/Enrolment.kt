package dev.tributary.sdk

/** Result of a sending round. */
internal enum class Verdict {
    /** Everything is sent. */
    EMPTY,

    /** The rest is sent after a pause. */
    LATER,

    /** Everything is sent except erasures, which the server did not understand. */
    PARTLY,

    /** Another process is sending. */
    BUSY,

    /** Nothing is sent before the next start. */
    HALT,
}

/** Registers the device with `configure` and stores the attribution. */
internal class Enrolment(private val context: SessionContext) {
    private val store = context.store

    /** Current revision of the data to send, and the last revision and device that were sent. */
    private var revision = 1
    private var sentRevision = 0
    private var sentDeviceId: String? = null

    /** Revision for which the round goes on without `configure`. */
    private var skippedRevision = 0
    private var errors = 0
    private var waiters = ArrayList<Promise<Attribution?>>()

    /** User id in clear text. It is never stored. */
    var userId: String? = context.options.userId
    var userIdSignature: String? = context.options.userIdSignature
    var globalParams: Map<String, Any?> = emptyMap()

    /** Device whose person these belong to. */
    private var personDeviceId: String? = null

    /** Forgets the person if another process has reset the device. */
    fun follow(state: State) {
        if (store.isProvisional || personDeviceId == state.deviceId) return
        if (personDeviceId != null) forgetPerson()
        personDeviceId = state.deviceId
    }

    fun forgetPerson() {
        userId = null
        userIdSignature = null
        globalParams = emptyMap()
    }

    /** Whether the server has received the current data. */
    fun isUpToDate(state: State): Boolean =
        sentRevision == revision && sentDeviceId == state.deviceId && !state.hasUnsentWithdrawal

    /** Whether the round may go on to the events. */
    fun isSettled(state: State): Boolean =
        isUpToDate(state) || (skippedRevision == revision && !state.hasUnsentWithdrawal)

    /** Begins a round, which asks again if the last attempt failed. */
    fun beginRound() {
        skippedRevision = 0
    }

    /** Marks the data as changed. */
    fun touch() {
        revision++
    }

    /** Forgets the failures of an earlier device. */
    fun restart() {
        errors = 0
        touch()
    }

    /** Returns the attribution, or waits for the first response. */
    fun attribution(timeoutMs: Long): Promise<Attribution?> {
        val promise = Promise<Attribution?>()
        val state = store.read()
        if (state.attribution != null || !state.isRecording) {
            promise.complete(state.attribution?.let { Attribution(it) })
            return promise
        }
        waiters.add(promise)
        val timer = context.environment.scheduler.schedule(timeoutMs) {
            waiters.remove(promise)
            promise.complete(null)
        }
        promise.then { timer.cancel() }
        return promise
    }

    /** Resolves the pending `getAttribution` calls. */
    fun resolveWaiters(attribution: Attribution?) {
        val waiting = waiters
        waiters = ArrayList()
        for (promise in waiting) promise.complete(attribution)
    }

    /** Registers the device. The result is null if the round may go on; `isSettled` says whether it is done. */
    fun enrol(done: (Verdict?) -> Unit) {
        Evidence(context.environment, store.read()).gather { evidence ->
            val sent = store.update { if (it.isOptedOut || it.isErased) it else it.copy(isContacted = true) }
            // The user opted out in the meantime.
            if (sent.isOptedOut || sent.isErased) return@gather done(null)
            follow(sent)
            // Evidence that no longer fits is completed by another request.
            val revision = if (evidence.fits(sent)) revision else revision - 1
            context.http.post("configure", body(sent, evidence)) { done(settle(it, sent, evidence, revision)) }
        }
    }

    private fun settle(outcome: Outcome, sent: State, evidence: Evidence, revision: Int): Verdict? {
        val kind = outcome.kind
        if (kind == Kind.DONE) return accepted(outcome.data.asObject(), sent, evidence, revision)
        if (kind == Kind.DISABLED) return disable()
        if (kind == Kind.LOCKED) return context.reportInvalidKey()
        if (kind == Kind.LATER) return later(outcome, revision)
        context.report("request_refused", "configure: ${outcome.code}")
        confirm(sent, revision) { it }
        return null
    }

    private fun later(outcome: Outcome, revision: Int): Verdict? {
        val state = store.read()
        if (outcome.isAnswered) errors++
        // A known device's events do not wait; a new device's wait for a few errors. A withdrawal holds all back,
        // because earlier events carry the consent that was withdrawn.
        val mayGoOn = outcome.isAnswered && !state.hasUnsentWithdrawal &&
            (state.isConfigured || errors >= Limits.CONFIGURE_ERRORS)
        if (!mayGoOn) return context.later(outcome.afterMs)
        skippedRevision = revision
        return null
    }

    private fun accepted(data: Map<String, Any?>?, sent: State, evidence: Evidence, revision: Int): Verdict? {
        val isEnabled = data?.get("sdkEnabled") as? Boolean ?: return Verdict.LATER
        if (!isEnabled) return disable()
        val raw = data["attribution"].asObject()
        var isNews = false
        val isCurrent = confirm(sent, revision) {
            isNews = raw != null && raw != it.attribution
            it.copy(
                isTokenConfirmed = true,
                isConfigured = true,
                isEnabled = true,
                isReferrerSent = it.isReferrerSent || evidence.installReferrer != null,
                openedUrl = if (it.openedUrl == evidence.openedUrl) null else it.openedUrl,
                attribution = raw,
            )
        }
        // The device was reset while the request was in flight.
        if (!isCurrent) return null
        val attribution = raw?.let { Attribution(it) }
        if (attribution != null && isNews) context.call(context.options.attributionCallback, attribution)
        resolveWaiters(attribution)
        data["opened"].asObject()?.let { context.call(context.options.openedLinkCallback, OpenedLink(it)) }
        return null
    }

    /** Records that the server has received the data. Returns false if they belong to an earlier device. */
    private fun confirm(sent: State, revision: Int, change: (State) -> State): Boolean {
        var isCurrent = false
        store.update {
            isCurrent = it.deviceId == sent.deviceId && !it.isErased
            val hasUnsent = it.hasUnsentWithdrawal && it.consent != sent.consent
            if (isCurrent) change(it).copy(hasUnsentWithdrawal = hasUnsent) else it
        }
        if (isCurrent) {
            sentRevision = revision
            sentDeviceId = sent.deviceId
        }
        return isCurrent
    }

    /** Disables the SDK until the next start, which asks the server again. */
    fun disable(): Verdict {
        store.update { it.copy(isEnabled = false, attribution = null, user = null, matching = emptyMap()) }
        context.queue.clear()
        resolveWaiters(null)
        return Verdict.HALT
    }

    private fun body(state: State, evidence: Evidence): String {
        val device = context.environment.device
        val hasReferrer = context.environment.providers.hasInstallReferrer && !state.isReferrerSent
        val body = LinkedHashMap<String, Any?>()
        body["deviceId"] = state.deviceId
        body.putAll(device.toMap())
        body["sdkVersion"] = Limits.VERSION
        body["userId"] = userId
        body["userIdSignature"] = userIdSignature
        // A URL that came while the evidence was gathered follows with the next request, which has its user agent.
        body["openedUrl"] = evidence.openedUrl
        body["userAgent"] = evidence.userAgent
        // The user may have refused since it was read.
        if (mayReadAdvertisingId(device, state.consent)) {
            body[if (device.platform == "ios") "idfa" else "gaid"] = evidence.advertisingId
        }
        // An empty object means that the store could not be read, which differs from having no store.
        if (hasReferrer) body["installReferrer"] = evidence.installReferrer?.toMap() ?: emptyMap<String, Any?>()
        body["consent"] = state.consent.toMap()
        if (!state.isTokenConfirmed) body["eraseToken"] = state.eraseToken
        return Json.write(withoutNulls(body))
    }
}

/** Data from the platform; unavailable values are null. */
internal class Evidence(private val environment: Environment, private val state: State) {
    var installReferrer: InstallReferrer? = null
    var advertisingId: String? = null
    var userAgent: String? = null
    val openedUrl get() = state.openedUrl
    private var pending = 1

    /** Returns whether the state still asks for the same evidence. */
    fun fits(now: State): Boolean = now.openedUrl == openedUrl && mayReadId(now) == mayReadId(state)

    private fun mayReadId(state: State) = mayReadAdvertisingId(environment.device, state.consent)

    /** Calls the providers whose data the server has not received yet, all at the same time. */
    fun gather(done: (Evidence) -> Unit) {
        val finish = { if (--pending == 0) done(this) }
        val providers = environment.providers
        if (providers.hasInstallReferrer && !state.isReferrerSent) {
            ask({ it.installReferrer() }, finish) { installReferrer = it }
        }
        if (mayReadId(state)) ask({ it.advertisingId() }, finish) { advertisingId = it }
        if (state.openedUrl != null) ask({ it.userAgent() }, finish) { userAgent = it }
        finish()
    }

    /** Calls a provider. A result after the time limit is ignored. */
    private fun <T> ask(provider: (Providers) -> T?, finish: () -> Unit, found: (T) -> Unit) {
        pending++
        var isOpen = true
        val timer = environment.scheduler.schedule(Limits.PROVIDER_MS) {
            if (isOpen) finish()
            isOpen = false
        }
        environment.blocking({ provider(it.providers) }) { result, _ ->
            if (isOpen) {
                isOpen = false
                timer.cancel()
                if (result != null) found(result)
                finish()
            }
        }
    }
}
