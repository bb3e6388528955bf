package config

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// place returns the place of a key of the draft.
func (d *draft) place(key string) place {
	if at, ok := d.set[key]; ok {
		return at
	}
	return d.at
}

func (d *draft) has(key string) bool {
	_, ok := d.set[key]
	return ok
}

// fault reports a key of the draft, unless reading already reported it.
func (r *serverReader) fault(d *draft, key, format string, args ...any) {
	full := join(d.path, key)
	if key != "" && r.read.has(full) {
		return
	}
	r.faults.add(d.place(key), full, format, args...)
}

// finish checks the settings of one server together.
func (r *serverReader) finish(d *draft) ServerEntry {
	s := &d.shape
	e := ServerEntry{
		ID: d.id, Risk: s.RiskLevel, Docker: s.Docker,
		Sessions: s.Sessions, InFlight: s.InFlight, Timeout: s.Timeout, StartTimeout: s.StartTimeout, IdleStop: s.IdleStop, OnDemand: s.OnDemand, Asks: s.Asks,
		Labels: s.Labels, TrustAnnotations: s.TrustAnnotations, SafeTools: s.SafeTools, Results: s.Results, Pin: s.Pin,
		Where: d.at.String(),
	}
	if kind, ok := d.adapted(); ok {
		e.Type = kind
		r.finishAdapted(d, &e)
		r.unused(d, "asks")
		r.checkLimits(d)
		r.retries(d, &e)
		return e
	}
	e.Type = r.transport(d)
	r.onlyForBuiltin(d, e.Type)
	r.onlyForAttach(d, e.Type)
	r.onlyFor(d, "openapi", "base_url", "credentials", "include", "exclude")
	if e.Type == TypeStdio {
		e.Command, e.Dir, e.Env = s.Command, s.Cwd, plainMap(s.Env)
		for _, arg := range s.Args {
			e.Args = append(e.Args, string(arg))
		}
		r.checkProcess(d, &e)
		r.unused(d, "headers")
		if d.inContainer() && d.has("cwd") {
			r.note(d.place("cwd"), "\"cwd\" of the server %q is not used: it runs in a container; set docker.workdir instead", d.id)
		}
	} else {
		e.URL, e.Headers = s.URL, plainMap(s.Headers)
		r.checkRemote(d, &e)
		r.unused(d, "args", "env", "cwd")
	}
	r.checkSandbox(d, &e)
	r.checkLimits(d)
	r.retries(d, &e)
	return e
}

// inContainer reports whether the server runs only in containers.
func (d *draft) inContainer() bool { return d.shape.RiskLevel == 3 && d.shape.Docker != nil }

// transport returns the transport of the server.
func (r *serverReader) transport(d *draft) string {
	switch {
	case d.has("command") && d.has("url"):
		r.fault(d, "", "the server has both a command and a url; keep one of them.")
	case d.inContainer() && !d.has("url"): // the image has the command
	case !d.has("command") && !d.has("url") && !r.read.has(join(d.path, "command")) && !r.read.has(join(d.path, "url")):
		r.fault(d, "", "the server has neither a command nor a url; add \"command\" for a program to start, \"url\" for a server elsewhere, \"openapi\" for a REST service, \"builtin\" for a built-in server, or \"attach\" for programs that attach by themselves.")
	}
	byKey := map[string]string{}
	for key, value := range map[string]string{"type": d.shape.Type, "transport": d.shape.Transport} {
		if !d.has(key) {
			continue
		}
		known, ok := transportNames[strings.ToLower(value)]
		if !ok {
			r.fault(d, key, "%s is not a known transport; write \"stdio\", \"http\" (streamable HTTP), \"sse\" or \"websocket\".", quote(value))
			continue
		}
		byKey[key] = known
	}
	named := byKey["type"]
	if other := byKey["transport"]; other != "" {
		if named != "" && named != other {
			r.fault(d, "transport", "type and transport name different transports; keep one of them.")
		}
		named = other
	}
	switch {
	case named == TypeStdio && d.has("url") && !d.has("command"):
		r.fault(d, "type", "a server with a url is not reached over stdio; write \"http\", \"sse\" or \"websocket\", or remove it.")
		return TypeHTTP
	case named != "" && named != TypeStdio && d.has("command") && !d.has("url"):
		r.fault(d, "type", "a server with a command is reached over stdio; remove it, or give a \"url\" instead of the command.")
		return TypeStdio
	case named != "":
		return named
	case d.has("url"):
		u, err := url.Parse(d.shape.URL)
		if err == nil && (u.Scheme == "ws" || u.Scheme == "wss") {
			return TypeWebSocket
		}
		// By convention, URLs of the older transport end like this.
		if err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
			r.note(d.place("url"), "the url of the server %q ends in /sse, so the older SSE transport is used; set \"type\" for another one", d.id)
			return TypeSSE
		}
		return TypeHTTP
	}
	return TypeStdio
}

var transportNames = map[string]string{
	"stdio": TypeStdio, "http": TypeHTTP, "sse": TypeSSE,
	"websocket": TypeWebSocket, "ws": TypeWebSocket,
	"streamable-http": TypeHTTP, "streamablehttp": TypeHTTP, "streamable_http": TypeHTTP,
}

func (r *serverReader) checkProcess(d *draft, e *ServerEntry) {
	if d.has("command") && strings.TrimSpace(e.Command) == "" {
		r.fault(d, "command", "is empty; name the program to start.")
	}
	if strings.ContainsRune(e.Command, 0) || slices.ContainsFunc(e.Args, func(a string) bool { return strings.ContainsRune(a, 0) }) {
		r.fault(d, "command", "it or its arguments contain a NUL character; remove it.")
	}
	for _, key := range []string{"auth", "bearerTokenEnv", "apiKey"} {
		if d.has(key) {
			r.fault(d, key, "a server that is started here gets no bearer token; pass it in \"env\".")
		}
	}
	r.checkEnv(d, "env", e.Env)
}

func (r *serverReader) checkEnv(d *draft, key string, env map[string]string) {
	for _, name := range names(env) {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			r.fault(d, key, "%s is not a valid name of an environment variable; remove the \"=\".", quote(name))
		case strings.ContainsRune(env[name], 0):
			r.fault(d, key, "the value of %s contains a NUL character; remove it.", quote(name))
		}
	}
}

func (r *serverReader) checkRemote(d *draft, e *ServerEntry) {
	if d.has("url") {
		u, err := url.Parse(e.URL)
		switch socket := e.Type == TypeWebSocket; {
		case socket && (err != nil || u.Scheme != "ws" && u.Scheme != "wss" || u.Hostname() == ""):
			r.fault(d, "url", "is not an address of a WebSocket server; write it as wss://host/path.")
		case !socket && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == ""):
			r.fault(d, "url", "is not an address of an HTTP server; write it as https://host/path, or wss://host/path for a WebSocket.")
		case socket && u.Fragment != "":
			r.fault(d, "url", "has a fragment, which a WebSocket URL cannot have; remove the part from # on.")
		}
	}
	if d.has("docker") {
		r.fault(d, "docker", "a server with a url does not run here and cannot run in a container; remove docker, or set its command.")
	}
	seen := map[string]bool{}
	for _, name := range names(e.Headers) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !mcpwire.IsToken(name):
			r.fault(d, "headers", "%s is not a valid name of a header; use letters, digits and \"-\".", quote(name))
		case strings.ContainsAny(e.Headers[name], "\r\n\x00"):
			r.fault(d, "headers", "the value of %s holds a line break; remove it.", quote(name))
		case seen[canonical]:
			r.fault(d, "headers", "%s is given twice in different letter case; remove one of them.", quote(canonical))
		}
		seen[canonical] = true
	}
	if d.hasMode() {
		r.auth(d, e, seen)
		return
	}
	r.bearer(d, e, seen["Authorization"])
}

// bearer adds the token to the headers, from the source that the entry names.
func (r *serverReader) bearer(d *draft, e *ServerEntry, have bool) {
	token, key := "", ""
	if d.has("auth") {
		token, key = string(d.shape.Auth.Bearer), "auth"
	}
	if d.has("bearerTokenEnv") {
		if key != "" {
			r.fault(d, "bearerTokenEnv", "auth has a bearer token too; keep one of them.")
		}
		key = "bearerTokenEnv"
		if token = r.vars[d.shape.BearerTokenEnv]; token == "" {
			// The value may be the token itself, so it is not repeated.
			r.fault(d, key, "the environment variable that it names is not set; write the name of one that holds the token.")
			return
		}
	}
	if d.has("apiKey") {
		if key != "" {
			r.fault(d, "apiKey", "%s has a bearer token too; keep one of them.", key)
		}
		key, token = "apiKey", string(d.shape.RemoteKey)
	}
	switch {
	case key == "":
		return
	case key == "apiKey" && token == "":
		r.fault(d, key, "is empty; write \"${NAME}\" with the name of a variable that holds the key.")
	case have:
		r.fault(d, key, "the headers already have Authorization; keep one of them.")
	case token == "":
		r.fault(d, key, "has no token; write {\"bearer\": \"${NAME}\"}, or a \"mode\".")
	case strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }):
		r.fault(d, key, "the token holds a space, a line break or another character that is not allowed in headers; remove it.")
	default:
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers["Authorization"] = "Bearer " + token
	}
}

func (r *serverReader) checkLimits(d *draft) {
	s := &d.shape
	if d.has("riskLevel") && (s.RiskLevel < 1 || s.RiskLevel > 3) {
		r.fault(d, "riskLevel", "%d is not a risk level; write 1 (low), 2 (medium) or 3 (high).", s.RiskLevel)
	}
	if d.has("docker") && s.Docker != nil {
		if s.Docker.Image == "" {
			r.fault(d, "docker", "has no image; add \"image\".")
		}
		r.checkEnv(d, "docker", s.Docker.Env)
	}
	for key, value := range map[string]struct{ n, most int }{"sessions": {s.Sessions, 1000}, "inFlight": {s.InFlight, 100_000}} {
		if d.has(key) && (value.n < 1 || value.n > value.most) {
			r.fault(d, key, "must be from 1 to %d.", value.most)
		}
	}
	if d.has("timeout") && (s.Timeout < time.Millisecond || s.Timeout > 7*day) {
		r.fault(d, "timeout", "must be from \"1ms\" to \"7d\".")
	}
	if d.has("startTimeout") && (s.StartTimeout < time.Millisecond || s.StartTimeout > time.Hour) {
		r.fault(d, "startTimeout", "must be from \"1ms\" to \"1h\".")
	}
	if d.has("results") && !slices.Contains([]string{ResultsMark, ResultsRefuse, ResultsOff}, s.Results) {
		r.fault(d, "results", "%s is not a known value; write \"mark\", \"refuse\" or \"off\".", quote(shorten(s.Results)))
	}
	if d.has("pin") && !slices.Contains([]string{schema.PinOff, schema.PinWarn, schema.PinQuarantine}, s.Pin) {
		r.fault(d, "pin", "%s is not a known value; write \"off\", \"warn\" or \"quarantine\".", quote(shorten(s.Pin)))
	}
	for i, glob := range s.SafeTools {
		if _, err := path.Match(glob, ""); err != nil || glob == "" {
			r.fault(d, "safeTools", "entry %d is not a pattern for tool names; use * and ?, such as \"read_*\".", i+1)
		}
	}
}

// unused adds a note for keys that have no effect for this kind of server.
func (r *serverReader) unused(d *draft, keys ...string) {
	for _, key := range keys {
		if d.has(key) {
			r.note(d.place(key), "%q of the server %q is not used: servers of this kind have none", key, d.id)
		}
	}
}

func plainMap(m map[string]looseString) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[key] = string(value)
	}
	return out
}

func inputFault(id string) error {
	return fmt.Errorf("${input:%s} prompts a person, which is not possible here; set an environment variable and write ${NAME} instead.", shorten(id))
}
