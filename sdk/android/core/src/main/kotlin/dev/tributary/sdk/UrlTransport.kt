package dev.tributary.sdk

import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL

/** Sends requests with [HttpURLConnection]. */
class UrlTransport : Transport {
    override fun send(request: HttpRequest): HttpResponse {
        val connection = URL(request.url).openConnection() as? HttpURLConnection ?: throw IOException("not an HTTP URL")
        try {
            connection.requestMethod = request.method
            connection.connectTimeout = Limits.REQUEST_MS
            connection.readTimeout = Limits.REQUEST_MS
            connection.useCaches = false
            // A redirect would turn POST into GET.
            connection.instanceFollowRedirects = false
            request.headers.forEach { connection.setRequestProperty(it.key, it.value) }
            request.body?.toByteArray()?.let { body ->
                connection.doOutput = true
                // No streaming mode: with it, HttpURLConnection hides the body of a 401 response.
                connection.outputStream.use { it.write(body) }
            }
            val status = connection.responseCode
            val stream: InputStream? = if (status < 400) connection.inputStream else connection.errorStream
            val text = stream?.use { read(it) } ?: ""
            val headers = LinkedHashMap<String, String>()
            for ((name, values) in connection.headerFields) {
                if (name != null && values.isNotEmpty()) headers[name.lowercase()] = values[0]
            }
            return HttpResponse(status, headers, text)
        } finally {
            connection.disconnect()
        }
    }

    /** Reads the body. Size and time are limited, because a hanging response blocks the queue. */
    private fun read(stream: InputStream): String {
        val end = System.nanoTime() + Limits.REQUEST_MS * 1_000_000L
        val bytes = ByteArrayOutputStream()
        val buffer = ByteArray(8_192)
        while (true) {
            val count = stream.read(buffer)
            if (count < 0) return String(bytes.toByteArray(), Charsets.UTF_8)
            bytes.write(buffer, 0, count)
            val isTooLong = bytes.size() > Limits.RESPONSE_BYTES || System.nanoTime() > end
            if (isTooLong) throw IOException("the response is too long")
        }
    }
}
