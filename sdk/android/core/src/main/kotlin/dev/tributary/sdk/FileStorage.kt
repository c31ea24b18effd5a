package dev.tributary.sdk

import java.io.Closeable
import java.io.File
import java.io.FileNotFoundException
import java.io.FileOutputStream
import java.io.IOException
import java.io.RandomAccessFile
import java.util.UUID

/**
 * Stores each record in a file. Writing syncs a temporary file and renames it, so that a crash leaves the old record or
 * the new one.
 *
 * @param syncFolder makes renames durable. Java has no function for it before Android 8.
 */
class FileStorage @JvmOverloads constructor(
    private val folder: File,
    private val syncFolder: Callback<File> = Callback { },
) : Storage {
    private val records = File(folder, "records")
    private val temporary = File(folder, "${UUID.randomUUID()}.tmp")
    private val sendingLock = File(folder, "sending.lock")

    override fun get(key: String): String? {
        val file = file(key)
        return try {
            file.readText()
        } catch (error: FileNotFoundException) {
            if (file.exists()) throw error
            null
        }
    }

    override fun set(key: String, value: String) {
        createFolder()
        FileOutputStream(temporary).use { out ->
            out.write(value.toByteArray())
            out.fd.sync()
        }
        if (!temporary.renameTo(file(key))) throw IOException("cannot rename a file in $folder")
        syncFolder.call(records)
    }

    override fun remove(key: String) {
        val file = file(key)
        if (!file.delete() && file.exists()) throw IOException("cannot delete $file")
    }

    override fun keys(): List<String> = records.list()?.toList() ?: emptyList()

    override fun tryLock(): Closeable? {
        createFolder()
        val path = sendingLock.canonicalPath
        // Ask here first: closing a second file would release the lock of this process.
        if (!synchronized(HeldLocks.paths) { HeldLocks.paths.add(path) }) return null
        var file: RandomAccessFile? = null
        var isLocked = false
        try {
            file = RandomAccessFile(sendingLock, "rw")
            isLocked = file.channel.tryLock() != null
        } finally {
            if (!isLocked) unlock(path, file)
        }
        return if (isLocked) Closeable { unlock(path, file) } else null
    }

    override fun <T> exclusively(task: () -> T): T = synchronized(HeldLocks) {
        createFolder()
        RandomAccessFile(File(folder, "state.lock"), "rw").use { file ->
            val lock = file.channel.lock()
            try {
                task()
            } finally {
                lock.release()
            }
        }
    }

    private fun unlock(path: String, file: RandomAccessFile?) {
        synchronized(HeldLocks.paths) {
            file?.close()
            HeldLocks.paths.remove(path)
        }
    }

    private fun file(key: String) = File(records, key)

    private fun createFolder() {
        if (records.isDirectory) return
        if (!records.mkdirs() && !records.isDirectory) throw IOException("cannot create $records")
    }

    /** Deletes temporary files that killed processes have left. */
    fun deleteLeftovers() {
        val limit = System.currentTimeMillis() - Limits.LEFTOVER_AGE_MS
        folder.listFiles()?.forEach { if (it.name.endsWith(".tmp") && it.lastModified() < limit) it.delete() }
    }
}

/** Locks that this process holds. File locks exclude other processes only. */
private object HeldLocks {
    val paths = HashSet<String>()
}
