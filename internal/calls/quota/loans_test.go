package quota

import (
	"maps"
	"testing"
	"testing/synctest"

	"github.com/callyard/callyard/internal/settings"
	"github.com/callyard/callyard/pkg/schema"
)

func TestBorrowedCapacityIsCountedAsLentByOthers(t *testing.T) {
	limits := map[schema.TenantID]settings.TenantLimits{"red": {Nominal: 5, Borrow: 10}, "blue": {Nominal: 6}, "green": {Nominal: 3}, "guests": {Borrow: 4}, "free": {Weight: 2}}
	type used map[schema.TenantID]int
	for _, c := range []struct {
		name string
		used used
		want map[schema.TenantID]TenantLoad
	}{
		{"nobody calls", nil, map[schema.TenantID]TenantLoad{"red": {}, "blue": {}, "green": {}, "guests": {}}},
		{"own calls", used{"red": 5, "blue": 1}, map[schema.TenantID]TenantLoad{"red": {InFlight: 5}, "blue": {InFlight: 1}, "green": {}, "guests": {}}},
		{"of two", used{"red": 8, "free": 100}, map[schema.TenantID]TenantLoad{"red": {8, 3, 0}, "blue": {0, 0, 2}, "green": {0, 0, 1}, "guests": {}}},
		{"of one, by two", used{"red": 7, "guests": 1, "green": 3}, map[schema.TenantID]TenantLoad{"red": {7, 2, 0}, "blue": {0, 0, 3}, "green": {3, 0, 0}, "guests": {1, 1, 0}}},
		{"counts of different moments", used{"red": 15, "blue": 6, "green": 2}, map[schema.TenantID]TenantLoad{"red": {15, 10, 0}, "blue": {6, 0, 0}, "green": {2, 0, 1}, "guests": {}}},
	} {
		if got := Loans(limits, c.used); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestTheCallsInFlightOfTenantsWithLimitsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := openWithoutRedis(t, Options{Tenants: parts{"red": {Nominal: 2, Borrow: 3}, "blue": {Nominal: 4}, "free": {Weight: 7}}})
		passes := takes(t, q, "red", 5)
		if got := q.InFlight(); !maps.Equal(got, map[schema.TenantID]int{"red": 5}) {
			t.Errorf("%v", got)
		}
		leaveAll(passes)
		if got := q.InFlight(); len(got) != 0 {
			t.Errorf("after the calls: %v", got)
		}
		if (*Quota)(nil).InFlight() != nil {
			t.Error("without limits there are counts")
		}
	})
}
