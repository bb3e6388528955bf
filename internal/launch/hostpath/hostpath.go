// Package hostpath judges paths of the host that somebody wants to show to
// something that is kept apart. It owns the list of those that give it the host,
// or the host's secrets. It only looks: what follows is for the caller to decide.
package hostpath

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sensitive are host paths that give a container the host, or its secrets. What
// lies below or above one of them is as bad.
var sensitive = [...]string{
	"/etc", "/proc", "/sys", "/dev", "/boot", "/root", "/run", "/var/run", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/var/lib", "/var/log", "/var/spool", "/var/cache", "/var/mail", "/private/etc", "/private/var/run", "/System", "/Library",
}

// sensitiveNames are parts of a path with secrets or a way to them in them,
// wherever they are.
var sensitiveNames = [...]string{".ssh", ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".netrc", ".local", ".env"}

// Look is what was found of a path.
type Look struct {
	Real string // where it leads in the end, cleaned
	// Socket says that it is a socket or a device, or is called as the socket of
	// a container engine is: whoever holds that is root on the host.
	Socket bool
	// Sensitive says that it holds, contains or lies in what belongs to the host
	// alone, by its name or through a link.
	Sensitive bool
}

// At looks at an absolute path. A path that is not there is judged by its name:
// it may be another machine's.
func At(host string) Look {
	clean := path.Clean(host)
	real, err := filepath.EvalSymlinks(clean)
	if err != nil {
		real = clean
	}
	info, err := os.Stat(real)
	odd := err == nil && !info.IsDir() && !info.Mode().IsRegular()
	return Look{Real: real, Socket: isEngineSocket(clean) || isEngineSocket(real) || odd, Sensitive: isSensitive(clean) || isSensitive(real)}
}

func isSensitive(p string) bool {
	if p == "/" || p == "/home" || p == "/Users" {
		return true
	}
	for _, s := range sensitive {
		if p == s || strings.HasPrefix(p, s+"/") || strings.HasPrefix(s, p+"/") {
			return true
		}
	}
	return slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool {
		return slices.Contains(sensitiveNames[:], part)
	})
}

func isEngineSocket(p string) bool {
	base := path.Base(p)
	return strings.HasSuffix(base, ".sock") || strings.HasSuffix(base, ".socket")
}
