package format

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// separator separates the server and the tool.
	separator = "__"
	// maxName is the strictest limit of all providers. Anthropic alone allows 128.
	maxName = 64
	// digestLength is the number of hex digits that keep shortened names distinct.
	digestLength = 10
	// minServerPart is the number of bytes of a server's id that a shortened name keeps at least.
	minServerPart = 20
)

// Name returns the name of a tool for all providers: "server__tool" if that is legal and can be
// split again, else a similar name that ends in a digest. It matches
// ^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$, which every provider accepts, and depends only on the server and
// the tool.
func Name(server, tool string) string {
	plain := server + separator + tool
	if len(plain) <= maxName && legalOnly(plain) == plain && readable(server) && !digested(plain) {
		return plain
	}
	tail := digestTail(server + "\x00" + tool)
	space := maxName - len(tail) - len(separator)
	s, t := legalOnly(server), legalRest(tool)
	if len(s)+len(t) > space {
		s = s[:min(len(s), max(minServerPart, space-len(t)))]
		t = t[:min(len(t), space-len(s))]
	}
	return s + separator + t + tail
}

// NameAs returns name if every provider accepts it, else a similar name that ends in a digest of
// the server and the tool that it stands for.
func NameAs(name, server, tool string) string {
	if name != "" && len(name) <= maxName && legalOnly(name) == name {
		return name
	}
	tail := digestTail(server + "\x00" + tool)
	fit := legalOnly(name)
	return fit[:min(len(fit), maxName-len(tail))] + tail
}

// digestTail returns the suffix of a changed name: a digest of text.
func digestTail(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:])[:digestLength]
}

// readable reports whether a name that starts with this server id and the separator can be split
// again.
func readable(server string) bool {
	return server != "" && !strings.Contains(server, separator) && !strings.HasSuffix(server, "_")
}

// digested reports whether the name ends like a shortened one.
func digested(name string) bool {
	at := len(name) - digestLength - 1
	if at < 0 || name[at] != '_' {
		return false
	}
	for _, c := range []byte(name[at+1:]) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// legalOnly returns the text with only the characters that all providers accept in names.
func legalOnly(text string) string {
	rest := legalRest(text)
	if rest == "" || (rest[0] >= '0' && rest[0] <= '9') || rest[0] == '-' {
		return "_" + rest
	}
	return rest
}

func legalRest(text string) string { return replaceOthers(text, nameByte) }

// replaceOthers returns the text with _ in place of every character that fits rejects.
func replaceOthers(text string, fits func(c byte) bool) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && fits(byte(r)) {
			return r
		}
		return '_'
	}, text)
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
