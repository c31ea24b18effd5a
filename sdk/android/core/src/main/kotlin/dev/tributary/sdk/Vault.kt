package dev.tributary.sdk

import java.io.Closeable
import java.io.IOException

/**
 * The storage with a memory fallback. Records that cannot be written (disk full) stay in memory until the app restarts.
 */
internal class Vault(private val context: SessionContext) {
    private val storage = context.environment.storage
    private val unwritten = HashMap<String, String>()

    /** Returns a record. Throws if the storage cannot be read. */
    @Throws(IOException::class)
    fun get(key: String): String? = unwritten[key] ?: storage.get(key)

    fun getOrNull(key: String): String? = attempt(null) { get(key) }

    fun set(key: String, value: String) {
        try {
            storage.set(key, value)
            unwritten.remove(key)
        } catch (error: IOException) {
            unwritten[key] = value
            failed(error)
        }
    }

    fun remove(key: String) {
        unwritten.remove(key)
        attempt(Unit) { storage.remove(key) }
    }

    /** Returns the keys with this prefix in order. */
    fun keys(start: String): List<String> {
        val stored = attempt(emptyList()) { storage.keys() }
        return (stored + unwritten.keys).filter { it.startsWith(start) }.distinct().sorted()
    }

    @Throws(IOException::class)
    fun tryLock(): Closeable? = storage.tryLock()

    /** Runs a task that reads and then writes. If the storage has no lock to give, the task runs nevertheless. */
    fun <T> exclusively(task: () -> T): T {
        var hasRun = false
        try {
            return storage.exclusively {
                hasRun = true
                task()
            }
        } catch (error: IOException) {
            if (hasRun) throw error
            failed(error)
            return task()
        }
    }

    fun failed(error: Exception) = context.report("storage_failed", error.toString())

    private fun <T> attempt(otherwise: T, run: () -> T): T = try {
        run()
    } catch (error: IOException) {
        failed(error)
        otherwise
    }
}

/** The stored state. It is read at every use, because another process of the app may have changed it. */
internal class Store(private val vault: Vault, clock: Clock) {
    private var text: String? = null
    private var current = State.create(clock.now())

    /** Changes that the app asked for while the stored state could not be read. */
    private val meanwhile = ArrayList<(State) -> State>()

    /** Whether the stored state could not be read yet. It may exist, so it must not be overwritten or bypassed. */
    var isProvisional = true
        private set

    /** Returns the state. */
    fun read(): State {
        try {
            val stored = vault.get("state")
            if (stored != null && stored == text) return current
        } catch (error: IOException) {
            vault.failed(error)
            return current
        }
        return update { it }
    }

    /** Makes a change that the app asked for. If the stored state cannot be read yet, it is applied to it later. */
    fun change(change: (State) -> State): State {
        val state = update(change)
        if (isProvisional) meanwhile.add(change)
        return state
    }

    /** Changes the state and returns the new one. */
    fun update(change: (State) -> State): State = vault.exclusively {
        var stored: String? = null
        try {
            stored = vault.get("state")
            if (stored != null && stored != text) adopt(stored)
            isProvisional = false
            meanwhile.clear()
        } catch (error: IOException) {
            vault.failed(error)
        }
        current = change(current)
        val json = current.toJson()
        if (!isProvisional && json != stored) vault.set("state", json)
        if (!isProvisional) text = json
        current
    }

    /** Takes over the stored state. Changes that were made while it was unreadable are made again. */
    private fun adopt(stored: String) {
        val found = State.of(stored) ?: return
        current = meanwhile.fold(found) { state, change -> change(state) }
        text = stored
    }
}
