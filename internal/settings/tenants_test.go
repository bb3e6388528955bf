package settings

import (
	"strings"
	"testing"
	"time"
)

func TestFaultsOfTenantsNameTheFix(t *testing.T) {
	for name, c := range map[string]struct {
		of   Tenants
		want string // path and part of the message; "": none
	}{
		"a lender and a borrower":   {Tenants{"red": {Servers: []string{"*"}, Limits: TenantLimits{Nominal: 20, Borrow: 10}}, "blue": {Servers: []string{"*"}, Limits: TenantLimits{Nominal: 5}}}, ""},
		"a borrower without own":    {Tenants{"red": {Servers: []string{"*"}, Limits: TenantLimits{Borrow: 10}}, "default": {Limits: TenantLimits{Nominal: 5}}}, ""},
		"nobody lends":              {Tenants{"red": {Servers: []string{"*"}, Limits: TenantLimits{Nominal: 5, Borrow: 10}}, "blue": {Servers: []string{"*"}}}, "tenants.red.limits.borrow set limits.nominal of the tenants that lend, or omit borrow."},
		"a negative nominal":        {Tenants{"red": {Servers: []string{"*"}, Limits: TenantLimits{Nominal: -1}}}, "limits.nominal from 1 to 1000000000; omit it"},
		"more than can be borrowed": {Tenants{"red": {Servers: []string{"*"}, Limits: TenantLimits{Borrow: mostCount + 1}}, "blue": {Servers: []string{"*"}, Limits: TenantLimits{Nominal: 5}}}, "limits.borrow from 1 to 1000000000; omit it"},
		"the shortest retention":    {Tenants{"red": {Servers: []string{"*"}, Retention: time.Hour}}, ""},
		"the longest retention":     {Tenants{"red": {Servers: []string{"*"}, Retention: 30 * 24 * time.Hour}}, ""},
		"a retention that is short": {Tenants{"red": {Servers: []string{"*"}, Retention: time.Hour - 1}}, "retention from 1h to 30d; omit it"},
		"a retention that is long":  {Tenants{"red": {Servers: []string{"*"}, Retention: 30*24*time.Hour + 1}}, "retention from 1h to 30d; omit it"},
		"a retention below zero":    {Tenants{"red": {Servers: []string{"*"}, Retention: -time.Hour}}, "retention from 1h to 30d; omit it"},
	} {
		faults := File{Tenants: c.of}.Validate()
		for _, tenant := range c.of {
			faults = append(faults, tenant.Validate()...)
		}
		path, message, _ := strings.Cut(c.want, " ")
		if c.want == "" && len(faults) > 0 || c.want != "" && (len(faults) != 1 || faults[0].Path != path || !strings.Contains(faults[0].Message, message)) {
			t.Errorf("%s: %+v", name, faults)
		}
	}
}
