package format

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// separator stands between the server and the tool.
	separator = "__"
	// nameMost is the shortest bound of the providers; Anthropic alone takes 128.
	nameMost = 64
	// digestLength is how many hex digits tell shortened names apart.
	digestLength = 10
	// serverMost is how much of a server's id a shortened name keeps at least.
	serverMost = 20
)

// Name returns the name of a tool for all providers: "server__tool" where that is
// legal and can be read back, else something like it that ends in a digest. It
// fits ^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$, which every provider takes, and depends on
// nothing but the server and the tool.
func Name(server, tool string) string {
	plain := server + separator + tool
	if len(plain) <= nameMost && legal(plain) == plain && readable(server) && !digested(plain) {
		return plain
	}
	tail := digestTail(server + "\x00" + tool)
	space := nameMost - len(tail) - len(separator)
	s, t := legal(server), legalRest(tool)
	if len(s)+len(t) > space {
		s = s[:min(len(s), max(serverMost, space-len(t)))]
		t = t[:min(len(t), space-len(s))]
	}
	return s + separator + t + tail
}

// NameAs returns name where every provider takes it, else something like it that ends in a
// digest of the server and the tool that it stands for.
func NameAs(name, server, tool string) string {
	if name != "" && len(name) <= nameMost && legal(name) == name {
		return name
	}
	tail := digestTail(server + "\x00" + tool)
	fit := legal(name)
	return fit[:min(len(fit), nameMost-len(tail))] + tail
}

// digestTail is what a name that was changed ends in, made of what it stands for.
func digestTail(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "_" + hex.EncodeToString(sum[:])[:digestLength]
}

// readable says that a name which begins with the server's id and the separator
// can be taken apart again.
func readable(server string) bool {
	return server != "" && !strings.Contains(server, separator) && !strings.HasSuffix(server, "_")
}

// digested says that the name ends like one that was shortened.
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

// legal returns the text in the letters that all providers take in names.
func legal(text string) string {
	rest := legalRest(text)
	if rest == "" || (rest[0] >= '0' && rest[0] <= '9') || rest[0] == '-' {
		return "_" + rest
	}
	return rest
}

func legalRest(text string) string { return spelled(text, nameByte) }

// spelled is the text with _ in place of every character that does not fit.
func spelled(text string, fits func(c byte) bool) string {
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
