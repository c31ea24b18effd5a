package dev.tributary.sdk

import java.util.UUID

/** Kinds of entries: event without revenue, event with revenue, identity. */
internal const val EVENT = 'e'
internal const val REVENUE = 'r'
internal const val IDENTITY = 'i'

/** `q.<sequence>.<kind>.<suffix>`: keys sort in queue order, and the kind is known without reading the entry. */
private const val START = "q."

/** An entry in the queue. */
internal class Entry(
    val key: String,
    /** The device that the entry belongs to; null means the current one. */
    val deviceId: String?,
    /** JSON, identical in every attempt. */
    val json: String,
) {
    val isIdentity get() = kindOf(key) == IDENTITY
}

/** The persistent queue. Each entry is a separate record, so processes cannot overwrite each other's entries. */
internal class Queue(private val context: SessionContext) {
    private val vault = context.vault
    private val limit = context.options.queueLimit
    private var sequence = 0L
    private var size = 0

    /** Loads the last sequence number. Returns the keys. */
    fun load(): List<String> = keys().also { keys ->
        sequence = maxOf(sequence, keys.maxOfOrNull { sequenceOf(it) } ?: 0)
    }

    /** Appends an entry after all others, even if the clock was set back. Returns its key once it is stored. */
    fun add(kind: Char, deviceId: String?, json: String): String {
        val now = context.environment.clock.now().coerceIn(0, Limits.CLOCK_MAX_MS) * 1_000
        sequence = maxOf(sequence + 1, now)
        // The suffix keeps the entries of two processes apart.
        val suffix = UUID.randomUUID().toString().substring(0, 8)
        val key = "$START${sequence.toString().padStart(16, '0')}.$kind.$suffix"
        vault.set(key, Json.quote(deviceId ?: "") + "\n" + json)
        size++
        if (size > limit) trim()
        return key
    }

    /** Returns all keys in order. */
    fun keys(): List<String> = vault.keys(START).also { size = it.size }

    /** Returns the next batch: one device's events up to the limits, or a single identity entry. */
    fun head(max: Int): List<Entry> {
        trim()
        val batch = ArrayList<Entry>()
        var bytes = 0
        for (key in keys()) {
            val isIdentity = kindOf(key) == IDENTITY
            if (batch.size >= minOf(max, Limits.BATCH_EVENTS) || (isIdentity && batch.isNotEmpty())) break
            val entry = read(key) ?: continue
            if (batch.isNotEmpty() && batch[0].deviceId != entry.deviceId) break
            bytes += entry.json.toByteArray().size + 1
            if (bytes > Limits.BATCH_BYTES && batch.isNotEmpty()) break
            batch.add(entry)
            if (isIdentity) break
        }
        return batch
    }

    fun remove(keys: List<String>) {
        size = maxOf(0, size - keys.size)
        keys.forEach { vault.remove(it) }
    }

    fun clear() = remove(keys())

    /** Returns the number of events. */
    fun eventCount(): Int = keys().count { kindOf(it) != IDENTITY }

    /** Returns an entry; null if another process has sent it. A damaged one is deleted. */
    fun read(key: String): Entry? {
        val text = vault.getOrNull(key) ?: return null
        val (first, json) = text.split('\n', limit = 2).let { it[0] to it.getOrElse(1) { "" } }
        val deviceId = try {
            Json.read(first) as? String
        } catch (_: JsonException) {
            null
        }
        if (deviceId != null && Json.readObject(json) != null) return Entry(key, deviceId.ifEmpty { null }, json)
        vault.failed(Exception("damaged queue entry"))
        remove(listOf(key))
        return null
    }

    /** Drops entries over the limit: first the oldest events without revenue, then the oldest other entries. */
    private fun trim() {
        val keys = keys()
        val excess = keys.size - limit
        if (excess <= 0) return
        val (cheap, others) = keys.partition { kindOf(it) == EVENT }
        context.report("queue_full", "Queue full: dropped the $excess oldest events.")
        remove((cheap + others).take(excess))
    }
}
