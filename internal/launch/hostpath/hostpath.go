// Package hostpath checks host paths that an operator wants to expose to a sandbox. It knows the
// paths that expose the host or its secrets. It only reports what it finds; the caller decides.
package hostpath

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// sensitive are paths that expose the host or its secrets. Paths below or above them do so as well.
var sensitive = [...]string{
	"/etc", "/proc", "/sys", "/dev", "/boot", "/root", "/run", "/var/run", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64",
	"/var/lib", "/var/log", "/var/spool", "/var/cache", "/var/mail", "/private/etc", "/private/var/run", "/System", "/Library",
}

// homes are the folders of home folders.
var homes = [...]string{"/home", "/Users"}

// sensitiveNames are path elements that hold secrets or give access to them, anywhere.
var sensitiveNames = [...]string{".ssh", ".aws", ".azure", ".config", ".docker", ".gnupg", ".kube", ".netrc", ".local", ".env"}

// Look is the result of checking a path.
type Look struct {
	Real string // the final target, cleaned
	// Socket means a socket or a device, or the name of a container engine's socket, which is
	// equivalent to root on the host.
	Socket bool
	// Sensitive means that the path is, contains or is inside a sensitive path, by name or through
	// a link.
	Sensitive bool
}

// At checks an absolute path. A path that does not exist is judged by its name, because it may be
// on another machine.
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
	// A home folder contains secrets such as .ssh. The folders in it are judged by their names.
	if slices.Contains(homes[:], p) || slices.Contains(homes[:], path.Dir(p)) || p == "/" {
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
