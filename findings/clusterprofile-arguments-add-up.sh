#!/usr/bin/env bash
# sigs.k8s.io/cluster-inventory-api v0.1.3, access.Config.BuildConfigFromCP: with the policy `Append`, the arguments of a
# ClusterProfile are added to the provider itself, not to a copy. The plugin of the second cluster gets those of the first
# as well, and every call adds more; with `AppendIfNotExists` the second cluster keeps the first one's variables. Both
# policies are off by default, and Kueue main (ff69552e) has no setting for them. Besides, of the profile's cluster only
# server, CA and proxy-url count: tls-server-name and disable-compression do nothing, and HTTPS_PROXY is not asked.
# Of two providers with one name the last one counts.
source "$(dirname "$0")/lib.sh"
with_go sigs.k8s.io/cluster-inventory-api@v0.1.3 <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

const providers = `{"providers": [{
  "name": "p",
  "execConfig": {"apiVersion": "client.authentication.k8s.io/v1", "command": "get-token", "args": ["login"]},
  "profileSourcedCLIArgsPolicy": "Append",
  "profileSourcedEnvVarsPolicy": "AppendIfNotExists"
}]}`

const profile = `{"status": {"accessProviders": [
  {"name": "p", "cluster": {"server": "https://first.example"}},
  {"name": "p", "cluster": {
    "server": "https://%[1]s.example",
    "tls-server-name": "inside.example",
    "disable-compression": true,
    "extensions": [
      {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-args", "extension": ["--cluster=%[1]s"]},
      {"name": "clusterprofiles.multicluster.x-k8s.io/exec/additional-envs", "extension": {"CLUSTER": "%[1]s"}}
    ]
  }}
]}}`

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	os.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	var config access.Config
	must(json.Unmarshal([]byte(providers), &config))
	for _, name := range []string{"c1", "c2", "c1"} {
		var cluster v1alpha1.ClusterProfile
		must(json.Unmarshal([]byte(fmt.Sprintf(profile, name)), &cluster))
		built, err := config.BuildConfigFromCP(&cluster)
		must(err)
		request, _ := http.NewRequest("GET", built.Host, nil)
		proxy, _ := built.Proxy(request)
		fmt.Println(built.Host, built.ExecProvider.Args, built.ExecProvider.Env)
		fmt.Printf("  server name %q, compression off: %v, proxy: %v\n", built.ServerName, built.DisableCompression, proxy)
	}
}
GO
expect "$("$program" 2>/dev/null)" <<'SEEN'
https://c1.example [login --cluster=c1] [{CLUSTER c1}]
  server name "", compression off: false, proxy: <nil>
https://c2.example [login --cluster=c1 --cluster=c2] [{CLUSTER c1}]
  server name "", compression off: false, proxy: <nil>
https://c1.example [login --cluster=c1 --cluster=c2 --cluster=c1] [{CLUSTER c1}]
  server name "", compression off: false, proxy: <nil>
SEEN
