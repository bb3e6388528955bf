// Package deploy tests the files of the folder deploy: images, compose files, a Helm chart,
// the NATS accounts, example configurations, dashboards and alerts.
//
// The tests promise that these files work: the permissions are those of pkg/bus and
// a whole fabric runs under them, every example loads, and every metric that a
// dashboard or an alert names exists. They run in the folder deploy.
package deploy
