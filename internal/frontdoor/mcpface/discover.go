package mcpface

import (
	"context"
	"encoding/json"
	"slices"
	"time"
)

const (
	extensionTasks = "io.modelcontextprotocol/tasks"
	tokensMost     = 1000
)

// capabilities is what the face can at a mount, as the era words it.
func (f *Face) capabilities(x *exchange) []byte {
	const changed = `{"listChanged":true}`
	resources := changed
	if !x.modern {
		resources = `{"subscribe":true,"listChanged":true}`
	}
	b := []byte(`{"tools":` + changed + `,"resources":` + resources + `,"logging":{},"prompts":` + changed + `,"completions":{}`)
	extensions := []byte{'{'}
	if x.modern && f.o.Calls.CanHold() {
		extensions = append(extensions, `"`+extensionTasks+`":{}`...)
	}
	each(get(f.about(x), "extensions"), func(id string, settings []byte) {
		if id != extensionTasks { // tasks are the face's own
			extensions = appendMember(extensions, id, settings)
		}
	})
	if len(extensions) > 1 {
		b = append(append(append(b, `,"extensions":`...), extensions...), '}')
	}
	return append(b, '}')
}

// about is what the one server of a mount says of itself, nil where there is none; see
// [schema.Definitions].
func (f *Face) about(x *exchange) []byte {
	if x.mount == "" {
		return nil
	}
	defs, err := f.o.Catalog.Definitions(x.mount)
	if err != nil {
		return nil // its workers are away, or have not read it yet
	}
	return defs.About
}

// instructions returns the member of that name as the server of a mount has it, with a
// comma in front; empty where there is none.
func (f *Face) instructions(x *exchange) []byte {
	text := get(f.about(x), "instructions")
	if len(text) == 0 {
		return nil
	}
	return append([]byte(`,"instructions":`), text...)
}

// info is who answers.
func (f *Face) info(x *exchange) []byte {
	name := "callyard"
	if x.mount != "" {
		name += "/" + x.mount
	}
	version := f.o.Version
	if version == "" {
		version = "dev"
	}
	theirs := get(f.about(x), "serverInfo")
	if own := getString(theirs, "version"); own != "" {
		version = own
	}
	b := append(appendQuoted([]byte(`{"name":`), name), `,"version":`...)
	b = appendQuoted(b, version)
	title := getString(theirs, "title")
	if title == "" {
		title = getString(theirs, "name")
	}
	if title != "" {
		b = appendMember(b, "title", quote(title))
	}
	for _, member := range []string{"description", "websiteUrl", "icons"} {
		if value := get(theirs, member); value != nil {
			b = appendMember(b, member, value)
		}
	}
	return append(b, '}')
}

// discover is server/discover.
func (f *Face) discover(x *exchange) []byte {
	b := []byte(`{"resultType":"complete","ttlMs":` + ttl + `,"cacheScope":"` + f.scope() + `","supportedVersions":["` + modernVersion + `"],"capabilities":`)
	b = append(b, f.capabilities(x)...)
	b = append(b, f.instructions(x)...)
	b = append(b, `,"_meta":{"`+metaServerInfo+`":`...)
	b = append(b, f.info(x)...)
	return append(b, "}}"...)
}

// listen is subscriptions/listen: the stream of changes of the modern era.
func (f *Face) listen(ctx context.Context, x *exchange) *fault {
	if !x.streams {
		return invalid("A subscription needs a client that reads events: send Accept: text/event-stream.")
	}
	filter := get(x.msg.params, "notifications")
	if !isObject(filter) {
		return &fault{Code: codeInvalidParams, Message: "The params lack notifications, an object."}
	}
	yes := func(name string) bool { return string(get(filter, name)) == "true" }
	w := wants{tools: yes("toolsListChanged"), prompts: yes("promptsListChanged"), resources: yes("resourcesListChanged")}
	if raw := get(filter, "taskIds"); raw != nil {
		if json.Unmarshal(raw, &w.tasks) != nil || len(w.tasks) > tokensMost {
			return &fault{Code: codeInvalidParams, Message: "taskIds is a list of task ids."}
		}
	}
	about := append(append([]byte(`"_meta":{"`+metaSubscription+`":`), x.msg.id...), '}')
	ear := f.hub.add(f, x.mount, w)
	defer f.hub.remove(ear)
	if len(w.tasks) > 0 {
		defer f.watchTasks(ctx, x, ear)()
	}
	if x.notify("notifications/subscriptions/acknowledged", acknowledged(&w, about)) != nil {
		return &fault{silent: true}
	}
	beat := time.NewTicker(f.o.Heartbeat)
	defer beat.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return &fault{silent: true}
		case <-f.leaving.Done():
			x.reply(append(append([]byte(`{"resultType":"complete",`), about...), '}'))
			return &fault{silent: true}
		case <-beat.C:
			err = x.hello()
		case <-ear.wake:
			err = ear.each(func(method string, params []byte) error {
				if params == nil {
					return x.notify(method, append(append([]byte{'{'}, about...), '}'))
				}
				// The params are an object of ours that has no _meta.
				return x.notify(method, append(append(append(slices.Clone(params[:len(params)-1]), ','), about...), '}'))
			})
		}
		if err != nil {
			return &fault{silent: true}
		}
	}
}

// acknowledged says what of a filter is heeded.
func acknowledged(w *wants, about []byte) []byte {
	inner := []byte{'{'}
	for _, kind := range []struct {
		name string
		on   bool
	}{{"toolsListChanged", w.tools}, {"promptsListChanged", w.prompts}, {"resourcesListChanged", w.resources}} {
		if kind.on {
			inner = appendMember(inner, kind.name, []byte("true"))
		}
	}
	if len(w.tasks) > 0 {
		ids, _ := json.Marshal(w.tasks) // strings only
		inner = appendMember(inner, "taskIds", ids)
	}
	b := append([]byte(`{"notifications":`), append(inner, "},"...)...)
	return append(append(b, about...), '}')
}
