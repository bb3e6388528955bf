package config

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// suggestedMost limits the length of a suggested name, because tool names start with it.
const suggestedMost = 32

// runners are programs that run the program named by their first argument.
var runners = []string{
	"npx", "bunx", "pnpx", "pnpm", "npm", "yarn", "bun", "uvx", "uv", "pipx", "node", "deno", "python", "python3", "ruby", "php", "java", "dotnet", "go", "docker", "podman",
	"sh", "bash", "env", "cmd",
}

// runnerWords are words between a runner and the program that it runs.
var runnerWords = []string{"run", "exec", "dlx", "x", "tool", "create", "start", "/c"}

// SuggestedID returns a server name for an entry, from the package or program of its command, or
// the host of its address. The same entry always gets the same name: 1 to 32 lower-case letters,
// digits, "_" and "-", with nothing from the environment, headers or options of the entry.
func SuggestedID(e ServerEntry) string {
	name := ""
	switch {
	case e.Builtin != nil:
		name = e.Builtin.Name
	case e.Endpoint != nil:
		name = hostOf(e.Endpoint.URL)
	case e.OpenAPI != nil:
		if name = hostOf(e.OpenAPI.BaseURL); name == "" {
			name = hostOf(e.OpenAPI.Document)
		}
	case e.URL != "":
		name = hostOf(e.URL)
	case e.Command != "":
		name = programOf(e.Command, e.Args)
	case e.Docker != nil:
		name = packageOf(e.Docker.Image)
	}
	if name = plainName(name); name == "" {
		return "server"
	}
	return name
}

// hostOf returns the host of an address without its port and without common prefixes.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := u.Hostname()
	for _, prefix := range []string{"www.", "mcp.", "api."} {
		if rest, ok := strings.CutPrefix(host, prefix); ok && strings.Contains(rest, ".") {
			host = rest
		}
	}
	return host
}

// programOf returns the program that a command runs. Arguments can be secrets, so it reads only
// one that cannot be the value of an option: the first one after flags and runner words.
func programOf(command string, args []string) string {
	program := packageOf(strings.ReplaceAll(command, `\`, "/"))
	if !slices.Contains(runners, strings.ToLower(program)) {
		return program
	}
	container := program == "docker" || program == "podman"
	for _, arg := range args {
		switch {
		case arg == "-y" || arg == "--yes" || arg == "-m" || slices.Contains(runnerWords, arg):
			continue
		case container && (arg == "-i" || arg == "--rm" || arg == "-t" || arg == "-it"):
			continue
		case strings.HasPrefix(arg, "-") || strings.Contains(arg, "="): // the next argument may be its value
			return program
		}
		return packageOf(strings.ReplaceAll(arg, `\`, "/"))
	}
	return program
}

// packageOf returns the last part of a path, package or image, without version and extension.
func packageOf(text string) string {
	name := path.Base(strings.TrimRight(text, "/"))
	if at := strings.LastIndexAny(name, "@:"); at > 0 {
		name = name[:at]
	}
	for _, kind := range []string{".exe", ".cmd", ".js", ".mjs", ".cjs", ".ts", ".py", ".rb", ".sh", ".jar"} {
		name = strings.TrimSuffix(name, kind)
	}
	return name
}

// plainName converts a name to lower-case letters, digits, "_" and "-".
func plainName(name string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= suggestedMost {
			break
		}
	}
	for name = b.String(); strings.Contains(name, "__"); { // it separates server and tool
		name = strings.ReplaceAll(name, "__", "_")
	}
	return strings.Trim(name, "-_")
}
