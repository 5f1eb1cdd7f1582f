/** JSON as studies use it: whole numbers of any length, texts, lists, objects, null, true, false. */
package sabun

import java.math.BigInteger

object Json {
    fun parse(text: String): Any? = Reader(text).whole()

    /** Keys sorted, no blanks, everything but printable ASCII escaped. */
    fun write(value: Any?): String = when (value) {
        is String -> quoted(value)
        is Map<*, *> -> value.entries.sortedBy { "${it.key}" }.joinToString(",", "{", "}") { quoted("${it.key}") + ":" + write(it.value) }
        is List<*> -> value.joinToString(",", "[", "]") { write(it) }
        else -> "$value"
    }

    private fun quoted(text: String) = text.map { letter ->
        when (letter) {
            '"' -> "\\\""
            '\\' -> "\\\\"
            '\n' -> "\\n"
            '\r' -> "\\r"
            '\t' -> "\\t"
            '\b' -> "\\b"
            '\u000c' -> "\\f"
            in ' '..'~' -> "$letter"
            else -> "\\u%04x".format(letter.code)
        }
    }.joinToString("", "\"", "\"")

    private class Reader(private val text: String) {
        private var at = 0

        fun whole(): Any? {
            val value = value()
            blanks()
            if (at != text.length) bad()
            return value
        }

        private fun bad(): Nothing = throw ClientError("a study must be valid JSON; it could not be parsed.")
        private fun peek() = text.getOrNull(at) ?: bad()
        private fun take(wanted: Char) = if (peek() == wanted) at++ else bad()
        private fun blanks() { while (text.getOrNull(at)?.isWhitespace() == true) at++ }

        private fun value(): Any? {
            blanks()
            return when (peek()) {
                '"' -> string()
                '{' -> several('{', '}') { blanks(); string().also { blanks(); take(':') } to value() }.toMap()
                '[' -> several('[', ']') { value() }
                else -> word()
            }
        }

        private fun <T> several(first: Char, last: Char, one: () -> T): List<T> {
            val found = mutableListOf<T>()
            take(first)
            blanks()
            while (peek() != last) {
                found += one()
                blanks()
                if (peek() == ',') at++ else if (peek() != last) bad()
            }
            at++
            return found
        }

        private fun word(): Any? {
            val found = Regex("null|true|false|-?\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?").matchAt(text, at)?.value ?: bad()
            at += found.length
            return when (found) {
                "null" -> null
                "true" -> true
                "false" -> false
                else -> if (found.any { it in ".eE" }) found.toDouble() else BigInteger(found)
            }
        }

        private fun string(): String {
            take('"')
            val found = StringBuilder()
            while (peek() != '"') {
                val letter = text[at++]
                if (letter != '\\') { found.append(letter); continue }
                when (val escaped = text.getOrNull(at++) ?: bad()) {
                    'n' -> found.append('\n')
                    'r' -> found.append('\r')
                    't' -> found.append('\t')
                    'b' -> found.append('\b')
                    'f' -> found.append('\u000c')
                    'u' -> {
                        found.append((text.substring(at, minOf(at + 4, text.length)).toIntOrNull(16) ?: bad()).toChar())
                        at += 4
                    }
                    else -> found.append(escaped)
                }
            }
            at++
            return found.toString()
        }
    }
}
