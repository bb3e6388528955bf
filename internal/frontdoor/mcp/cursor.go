package mcp

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
)

// listID identifies a list by its member in the result and its mount.
type listID struct{ member, mount string }

// cursor returns the cursor that points after an entry of the list. It begins with a checksum of
// the list and the entry, which distinguishes an outdated cursor from one that never belonged to
// this list. Cursors grant no access, so a checksum suffices and no signature is needed.
func (id listID) cursor(entry string) string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(entry)), id.sum(entry))
	return base64.RawURLEncoding.EncodeToString(append(b, entry...))
}

func (id listID) sum(entry string) uint32 {
	return crc32.ChecksumIEEE([]byte(id.member + "\x00" + id.mount + "\x00" + entry))
}

// issued reports whether any front door issued the cursor for this list.
func (id listID) issued(cursor string) bool {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	return err == nil && len(b) > 4 && binary.BigEndian.Uint32(b) == id.sum(string(b[4:]))
}

// pageOf returns the index of the requested page.
func (l *list) pageOf(x *exchange) (int, *fault) {
	cursor, e := x.cursor()
	if e != nil || cursor == "" {
		return 0, e
	}
	n, ok := l.page[cursor]
	switch {
	case ok:
		return n, nil
	case l.of.issued(cursor):
		return 0, invalidParams("The cursor is outdated because the list changed; start again without a cursor.")
	}
	return 0, invalidParams("The cursor is invalid: it is not a nextCursor of this list. Start again without a cursor.")
}

// cursor returns the cursor of a request, or "" if it has none.
func (x *exchange) cursor() (string, *fault) {
	value := x.msg.param("cursor")
	cursor, isText := str(value)
	if !isText && value != nil && string(value) != "null" {
		return "", invalidParams("The cursor is invalid: it is not a string.")
	}
	return cursor, nil
}
