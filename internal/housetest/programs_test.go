package housetest

import (
	"fmt"
	"slices"
	"strings"
)

// program lists the packages that a program must not link.
type program struct {
	root   string // its package, relative to the root of the module
	barred []forbiddenPackages
}

// forbiddenPackages lists packages that some program must not link: packages of the module by directory, or
// external ones by import path, each with all packages below it.
type forbiddenPackages struct {
	reason string
	roots  []string
}

// Restrictions of more than one program.
var (
	worksNot = forbiddenPackages{"only a worker starts processes and holds sessions of servers", []string{
		"internal/launch", "internal/session", "internal/worker", "internal/setup/workerrole",
		"github.com/moby", "github.com/docker", "github.com/getkin/kin-openapi",
	}}
	decidesNot = forbiddenPackages{"only an approver can let people decide", []string{
		"internal/approver", "internal/setup/approverrole", "internal/authserver", "internal/store/oauthtable", "internal/store/slacktable", "internal/store/noticetable", "github.com/slack-go/slack", "github.com/coreos/go-oidc",
	}}
	servesNoCaller = forbiddenPackages{"only a front door serves callers, admits and routes calls", []string{
		"internal/frontdoor", "internal/setup/frontdoorrole", "internal/calls", "internal/calls/admission", "internal/batch", "internal/catalog", "internal/dispatch",
		"internal/calls/quota", "internal/calls/cache", "internal/calls/records", "internal/store/journal", "github.com/rs/cors",
	}}
	isNoCommand = forbiddenPackages{"the command line and the embedded NATS are parts of callyard", []string{
		"internal/cli", "internal/demo", "internal/embedded", "github.com/nats-io/nats-server", "github.com/spf13/cobra", "charm.land", "gonum.org",
	}}
	drawsNothing = forbiddenPackages{"plots are drawn by the module bench, whose program `callyard bench` starts", []string{
		"gonum.org", "codeberg.org/go-fonts", "codeberg.org/go-pdf", "codeberg.org/go-latex", "git.sr.ht/~sbinet", "github.com/ajstarks/svgo",
		"github.com/golang/freetype", "golang.org/x/image", "image/jpeg", "image/png",
	}}
	testsNothing = forbiddenPackages{"a program must not contain test code", []string{
		"testing", "net/http/httptest", "pkg/bus/bustest", "pkg/bus/porttest", "internal/mcptest", "internal/openapitest", "internal/housetest", "internal/kit/goldentest", "internal/kit/logtest", "internal/kit/polltest", "internal/upstream/oauth/oauthtest",
	}}
)

// programs are all shipped programs. `callyard` contains every role.
var programs = []program{
	{"cmd/callyard", []forbiddenPackages{drawsNothing, testsNothing}},
	{"cmd/frontdoor", []forbiddenPackages{worksNot, decidesNot, isNoCommand, testsNothing}},
	{"cmd/approver", []forbiddenPackages{worksNot, servesNoCaller, isNoCommand, testsNothing}},
	{"cmd/worker", []forbiddenPackages{decidesNot, servesNoCaller, isNoCommand, testsNothing, {"a worker uses core NATS only and owns no persistent data", []string{
		"internal/store/ledger", "internal/store/audit", "internal/approval", "internal/confirm", "internal/webhook", "github.com/redis/go-redis", "github.com/danielgtaylor/huma",
	}}}},
}

// linked holds the packages that a program links, with the imports of each.
type linked map[string][]string

// readLinked parses the output of go list -deps with the format
// "{{.ImportPath}} {{join .Imports " "}}".
func readLinked(out string) linked {
	l := make(linked)
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 {
			l[f[0]] = f[1:]
		}
	}
	return l
}

// unsealed returns the packages that the program must not link but does, with the import path that
// leads to each.
func (p program) unsealed(module string, l linked) (found []string) {
	for _, b := range p.barred {
		for _, root := range b.roots {
			if first, _, _ := strings.Cut(root, "/"); first == "internal" || first == "pkg" {
				root = module + "/" + root
			}
			if way := l.way(module+"/"+p.root, root); way != nil {
				for i := range way {
					way[i] = strings.TrimPrefix(way[i], module+"/")
				}
				found = append(found, fmt.Sprintf("%s must not link %s: %s. The imports are %s.", p.root, way[len(way)-1], b.reason, strings.Join(way, " > ")))
			}
		}
	}
	return found
}

// way returns a shortest chain of imports from one package to root or a package below it, or nil if
// there is none.
func (l linked) way(from, root string) []string {
	before := map[string]string{from: ""}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		at := next[0]
		if at == root || strings.HasPrefix(at, root+"/") {
			var way []string
			for ; at != ""; at = before[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			return way
		}
		for _, to := range l[at] {
			if _, seen := before[to]; !seen {
				before[to] = at
				next = append(next, to)
			}
		}
	}
	return nil
}
