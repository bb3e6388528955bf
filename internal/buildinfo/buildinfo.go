// Package buildinfo returns the version, commit and date of the running build. A release sets them
// with the linker; other builds use the data that Go recorded from the repository. No other package
// reads either, so that every program, metric and protocol reports the same build.
package buildinfo

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// Set by the linker in a release, which can only set variables. No other code writes them:
//
//	-ldflags "-X github.com/callyard/callyard/internal/buildinfo.version=v1.2.3 …"
var version, commit, date string

// Info describes a build. Unknown fields are empty, except Version.
type Info struct {
	Version string `json:"version"` // v1.2.3, a pseudo-version of Go, or dev
	Commit  string `json:"commit"`  // in full; with "-dirty" if the tree had uncommitted changes
	Date    string `json:"date"`    // of the commit, RFC 3339, so that two builds of one commit are identical
}

// Read returns the running build.
func Read() Info {
	build, _ := debug.ReadBuildInfo()
	return merge(Info{version, commit, date}, build)
}

// merge fills the fields that the linker did not set with Go's data; build may be nil.
func merge(linked Info, build *debug.BuildInfo) Info {
	recorded := Info{Version: "dev"}
	if build != nil {
		var modified bool
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				recorded.Commit = s.Value
			case "vcs.time":
				recorded.Date = s.Value
			case "vcs.modified":
				modified = s.Value == "true"
			}
		}
		switch v := build.Main.Version; {
		case v != "" && v != "(devel)":
			recorded.Version = v
		case recorded.Commit != "":
			recorded.Version = "dev-" + short(recorded.Commit)
		}
		if modified && recorded.Commit != "" {
			recorded.Commit += dirty
		}
	}
	return Info{cmp.Or(linked.Version, recorded.Version), cmp.Or(linked.Commit, recorded.Commit), cmp.Or(linked.Date, recorded.Date)}
}

const dirty = "-dirty"

// short shortens a commit for display, and keeps the "-dirty" suffix.
func short(commit string) string {
	const digits = 12
	hash, found := strings.CutSuffix(commit, dirty)
	if len(hash) > digits {
		hash = hash[:digits]
	}
	if found {
		return hash + dirty
	}
	return hash
}

// String returns one line for display: the version, then commit, date, Go and platform.
func (i Info) String() string {
	about := ""
	if i.Commit != "" {
		about += "commit " + short(i.Commit) + ", "
	}
	if i.Date != "" {
		about += i.Date + ", "
	}
	return fmt.Sprintf("%s (%s%s, %s/%s)", i.Version, about, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
