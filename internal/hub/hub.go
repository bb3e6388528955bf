package hub

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callyard/callyard/internal/buildinfo"
	"github.com/callyard/callyard/internal/hub/calculator"
	"github.com/callyard/callyard/internal/hub/datetime"
	"github.com/callyard/callyard/internal/hub/fetch"
	"github.com/callyard/callyard/internal/hub/files"
	"github.com/callyard/callyard/internal/hub/search"
	"github.com/callyard/callyard/internal/hub/think"
	"github.com/callyard/callyard/internal/hub/todo"
	"github.com/callyard/callyard/internal/hub/units"
	"github.com/callyard/callyard/internal/launch/native"
)

// Names of settings, as used in [Entry.Needs] and in errors.
const (
	settingRoots  = "roots"
	settingAllow  = "allow"
	settingEngine = "engine"
	settingURL    = "engine_url"
	settingKey    = "api_key"
)

// Entry describes a built-in server.
type Entry struct {
	Name, Title, Description string
	// Needs lists the settings that the server requires.
	Needs []string
	// Safe reports whether the server needs no settings and reaches no files and no network, so
	// that it may be offered without configuration.
	Safe bool
	// Tools lists the names of the server's tools in listing order. Those of "files" that change
	// files are included only if a root is writable.
	Tools []string
}

// Settings holds the settings of all built-in servers. A server refuses those that it does not
// have.
type Settings struct {
	// Roots are the absolute paths of the directories that "files" may use. The suffix ":rw"
	// makes one writable; the others are read-only.
	Roots []string
	// Allow lists the hosts, and the internal addresses or CIDR ranges, that "fetch" may reach
	// although they are not public; see package fetch.
	Allow []string
	// Engine is the search engine of "search": searxng, brave, tavily or serper. EngineURL is its
	// address, which searxng needs. APIKey is its key, which the others need.
	Engine, EngineURL, APIKey string
}

// builtin is a server and its constructor.
type builtin struct {
	Entry
	has  []string // supported settings, including Needs
	open func(s Settings) (tools []native.Tool, closeServer func(), err error)
}

func builtins() []builtin {
	return []builtin{
		{
			Entry: Entry{
				Name: "calculator", Title: "Calculator", Safe: true,
				Description: "Evaluates arithmetic expressions with exact integers, mathematical functions and statistics.",
				Tools:       []string{"evaluate", "list_allowed_fns", "help"},
			},
			open: withoutSettings(calculator.Tools),
		},
		{
			Entry: Entry{
				Name: "datetime", Title: "Date and time", Safe: true,
				Description: "Tells the current time and converts times between time zones.",
				Tools:       []string{"now", "convert_timezone"},
			},
			open: withoutSettings(func() []native.Tool { return datetime.Tools(time.Now) }),
		},
		{
			Entry: Entry{
				Name: "fetch", Title: "Fetch",
				Description: "Fetches pages of the public web as text. Internal addresses are refused unless allow opens them.",
				Tools:       []string{"fetch_content"},
			},
			has: []string{settingAllow},
			open: func(s Settings) ([]native.Tool, func(), error) {
				tools, err := fetch.Tools(s.Allow, agent())
				return tools, func() {}, err
			},
		},
		{
			Entry: Entry{
				Name: "files", Title: "Files", Needs: []string{settingRoots},
				Description: "Reads and searches files below the directories in roots, and changes them where a root ends in :rw.",
				Tools:       []string{"read", "list", "tree", "glob", "grep", "info", "write", "edit", "copy", "move", "delete", "create_dir"},
			},
			open: func(s Settings) ([]native.Tool, func(), error) {
				f, err := files.Open(s.Roots)
				if err != nil {
					return nil, nil, err
				}
				return f.Tools(), f.Close, nil
			},
		},
		{
			Entry: Entry{
				Name: "search", Title: "Web search", Needs: []string{settingEngine},
				Description: "Searches the web with SearXNG, Brave, Tavily or Serper.",
				Tools:       []string{"search"},
			},
			has: []string{settingURL, settingKey},
			open: func(s Settings) ([]native.Tool, func(), error) {
				tools, err := search.Tools(search.Settings{Engine: s.Engine, URL: s.EngineURL, APIKey: s.APIKey, Agent: agent()})
				return tools, func() {}, err
			},
		},
		{
			Entry: Entry{
				Name: "think", Title: "Think", Safe: true,
				Description: "Gives a model a place to reason before it acts.",
				Tools:       []string{"think"},
			},
			open: withoutSettings(think.Tools),
		},
		{
			Entry: Entry{
				Name: "todo", Title: "To-do list", Safe: true,
				Description: "Keeps a to-do list for each session.",
				Tools:       []string{"update", "list"},
			},
			open: withoutSettings(func() []native.Tool { return todo.Tools(time.Now) }),
		},
		{
			Entry: Entry{
				Name: "units", Title: "Unit converter", Safe: true,
				Description: "Converts between units of temperature, length, weight, speed, energy and others.",
				Tools:       []string{"convert", "list_conversions", "help"},
			},
			open: withoutSettings(units.Tools),
		},
	}
}

// withoutSettings wraps tools that need no settings and hold nothing to close.
func withoutSettings(tools func() []native.Tool) func(Settings) ([]native.Tool, func(), error) {
	return func(Settings) ([]native.Tool, func(), error) { return tools(), func() {}, nil }
}

// agent is the User-Agent header of requests.
func agent() string { return "Callyard/" + buildinfo.Read().Version }

// List returns the built-in servers sorted by name.
func List() []Entry {
	all := builtins()
	out := make([]Entry, len(all))
	for i, b := range all {
		out[i] = b.Entry
	}
	return out
}

// Open creates the built-in server with the given name. Call closeServer to release its resources
// once no call of its tools is running. Errors name the setting at fault and the fix.
func Open(name string, s Settings) (server *native.Server, closeServer func(), err error) {
	all := builtins()
	i := slices.IndexFunc(all, func(b builtin) bool { return b.Name == name })
	if i < 0 {
		var names []string
		for _, b := range all {
			names = append(names, b.Name)
		}
		return nil, nil, fmt.Errorf("there is no built-in server %q; use one of %s", name, strings.Join(names, ", "))
	}
	b := all[i]
	if err := b.checkSettings(s); err != nil {
		return nil, nil, err
	}
	tools, closeServer, err := b.open(s)
	if err != nil {
		return nil, nil, fmt.Errorf("the built-in server %q: %w", name, err)
	}
	info := native.Info{Name: b.Name, Title: b.Title, Version: buildinfo.Read().Version, Instructions: b.Description}
	if server, err = native.New(info, tools...); err != nil {
		closeServer()
		return nil, nil, fmt.Errorf("the built-in server %q: %w", name, err)
	}
	return server, closeServer, nil
}

// checkSettings reports settings that the server does not have, and required ones that are missing.
func (b *builtin) checkSettings(s Settings) error {
	given := []struct {
		name string
		is   bool
		fix  string
	}{
		{settingRoots, len(s.Roots) > 0, `give it a list of directories, such as ["/srv/data", "/srv/out:rw"]`},
		{settingAllow, len(s.Allow) > 0, ""},
		{settingEngine, s.Engine != "", "set it to searxng, brave, tavily or serper"},
		{settingURL, s.EngineURL != "", ""},
		{settingKey, s.APIKey != "", ""},
	}
	for _, g := range given {
		switch {
		case g.is && !slices.Contains(b.has, g.name) && !slices.Contains(b.Needs, g.name):
			return fmt.Errorf("the built-in server %q has no setting %s; remove it", b.Name, g.name)
		case !g.is && slices.Contains(b.Needs, g.name):
			return fmt.Errorf("the built-in server %q needs the setting %s: %s", b.Name, g.name, g.fix)
		}
	}
	return nil
}
