package mcp

import (
	"cmp"

	"github.com/callyard/callyard/internal/calls"
	"github.com/callyard/callyard/internal/catalog"
	"github.com/callyard/callyard/internal/kit/mcpwire"
	"github.com/callyard/callyard/pkg/schema"
)

// discovery describes a mount: its capabilities and its server info.
type discovery struct {
	catalog *catalog.Catalog
	calls   *calls.Calls
	lists   *lists
	version string // of the build
}

// capabilities returns the capabilities of a mount, in the format of the era.
func (d *discovery) capabilities(x *exchange) []byte {
	const changed = `{"listChanged":true}`
	resources := changed
	if !x.modern {
		resources = `{"subscribe":true,"listChanged":true}`
	}
	b := []byte(`{"tools":` + changed + `,"resources":` + resources + `,"logging":{},"prompts":` + changed + `,"completions":{}`)
	extensions := []byte{'{'}
	if x.modern && d.calls.CanHold() {
		extensions = append(extensions, `"`+mcpwire.ExtensionTasks+`":{}`...)
	}
	each(get(d.server(x), "extensions"), func(id string, settings []byte) {
		if id != mcpwire.ExtensionTasks { // Callyard implements tasks itself
			extensions = appendMember(extensions, id, settings)
		}
	})
	if len(extensions) > 1 {
		b = append(append(append(b, `,"extensions":`...), extensions...), '}')
	}
	return append(b, '}')
}

// server returns the self-description of the server of a single-server mount, or nil if the mount
// has no single server; see [schema.Definitions].
func (d *discovery) server(x *exchange) []byte {
	if !ofServer(x.mount) {
		return nil
	}
	defs, err := d.catalog.Definitions(schema.ServerID(x.mount))
	if err != nil || !x.visibleCatalog().Has(schema.ServerID(x.mount)) {
		return nil // its workers are disconnected or have not read it yet, or the caller may not see it
	}
	return defs.About
}

// instructions returns the member with that name from the server of a mount, preceded by a
// comma, or nothing if there is none.
func (d *discovery) instructions(x *exchange) []byte {
	if x.searching {
		return []byte(searchInstructions)
	}
	text := get(d.server(x), "instructions")
	if len(text) == 0 {
		return nil
	}
	return append([]byte(`,"instructions":`), text...)
}

// info returns the serverInfo of the mount.
func (d *discovery) info(x *exchange) []byte {
	name := "callyard"
	if x.mount != "" {
		name += "/" + x.mount
	}
	version := d.version
	theirs := get(d.server(x), "serverInfo")
	if own := getString(theirs, "version"); own != "" {
		version = own
	}
	b := append(appendQuoted([]byte(`{"name":`), name), `,"version":`...)
	b = appendQuoted(b, version)
	if title := cmp.Or(getString(theirs, "title"), getString(theirs, "name")); title != "" {
		b = appendMember(b, "title", quote(title))
	}
	for _, member := range []string{"description", "websiteUrl", "icons"} {
		if value := get(theirs, member); value != nil {
			b = appendMember(b, member, value)
		}
	}
	return append(b, '}')
}

// result returns the result of server/discover.
func (d *discovery) result(x *exchange) []byte {
	b := []byte(`{"resultType":"complete","ttlMs":` + ttl + `,"cacheScope":"` + d.lists.scope() + `","supportedVersions":["` + mcpwire.Modern + `"],"capabilities":`)
	b = append(b, d.capabilities(x)...)
	b = append(b, d.instructions(x)...)
	b = append(b, `,"_meta":{"`+mcpwire.MetaServerInfo+`":`...)
	b = append(b, d.info(x)...)
	return append(b, "}}"...)
}
