package journal

import "testing"

func TestAStoredCallKeepsItsTenant(t *testing.T) {
	c := goldenCalls()[0]
	c.Principal.Name, c.Principal.Tenant = "ana", "red"
	msg := appendCall(appendHead(nil, &Head{Log: LogCalls, Epoch: 1, Writer: 1, Number: 1, First: 0, Count: 1, At: goldenTime}), &c)
	var got []CallRecord
	if _, err := ReadCalls(msg, func(r *CallRecord) { got = append(got, *r) }); err != nil || len(got) != 1 || got[0].Principal.Tenant != "red" {
		t.Errorf("%+v, %v", got, err)
	}
}
