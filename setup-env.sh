#!/usr/bin/env bash
# Creates an environment on this machine for the three stories: four kind clusters with Open Cluster Management, Kueue
# and placement-ac. A second run creates only what is missing. The environment fits the samples: the cluster set
# `spoke` is bound in kueue-system, the workers have queues, and two of them have simulated GPUs.
set -euo pipefail

readonly HUB=hub WORKERS=(cluster1 cluster2 cluster3) GPU_WORKERS=(cluster2 cluster3) GPUS=3
readonly ADDONS=(managed-serviceaccount cluster-proxy resource-usage-collect)
readonly CHARTS=https://open-cluster-management.io/helm-charts
readonly KUEUE_CHART=oci://registry.k8s.io/kueue/charts/kueue
readonly TOOLS=(docker:20.10.0 kind:0.24.0 kubectl:1.31.0 helm:3.12.0 clusteradm:0.11.0) # kubectl: --for=create
readonly IMAGE=localhost/placement-ac:v0.1.0 # the same as in kind/: the node has it, and no registry is asked
readonly OLDEST_KUEUE=0.16.6 OLDEST_KUEUE_WITH_PROFILES=0.19.0                            # docs/limits.md, accessProviders
readonly PATIENCE=600s

KUEUE_VERSION=v0.20.6
MODE=provisioning
DRY_RUN=false
CLEAN=false
TOKEN=

usage() {
    cat <<END
Usage: setup-env.sh [--kueue-version VERSION] [--cluster-profile] [--dry-run]
       setup-env.sh --clean [--dry-run]

  --kueue-version VERSION  the release of Kueue on all clusters (default: $KUEUE_VERSION)
  --cluster-profile        let Kueue use ClusterProfiles, with the feature gates of OCM and Kueue that this needs;
                           without it, Kueue uses kubeconfigs. To switch, run --clean first
  --dry-run                print the commands without running them (+ changes something, ? reads something)
  --clean                  delete the four clusters, and stop
END
}

main() {
    parse "$@"
    cd "$(dirname "${BASH_SOURCE[0]}")"
    exec 3>&1 # where commands are printed, also from within $(…)
    check_version
    if [[ $CLEAN == true ]]; then
        check_tools kind
        delete_clusters
        return
    fi
    check_tools docker kind kubectl helm clusteradm
    make_clusters
    make_hub
    join_workers
    install_kueue
    bind_cluster_set
    install_addons
    install_controller
    simulate_gpus
    wait_for_all
    print_next_steps
}

parse() {
    while (($#)); do
        case $1 in
        --kueue-version)
            (($# > 1)) || refuse "give --kueue-version a version, such as $KUEUE_VERSION"
            KUEUE_VERSION=v${2#v}
            shift
            ;;
        --cluster-profile) MODE="cluster-profile" ;;
        --dry-run) DRY_RUN=true ;;
        --clean) CLEAN=true ;;
        --help | -h)
            usage
            exit
            ;;
        *) refuse "unknown option $1; --help lists them" ;;
        esac
        shift
    done
}

check_version() {
    local oldest=$OLDEST_KUEUE
    [[ $MODE != cluster-profile ]] || oldest=$OLDEST_KUEUE_WITH_PROFILES
    [[ $KUEUE_VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?$ ]] ||
        refuse "$KUEUE_VERSION is not a version such as v0.20.6"
    is_at_least "${KUEUE_VERSION#v}" "$oldest" ||
        refuse "choose Kueue $oldest or newer: $KUEUE_VERSION is too old"
}

# -- how commands are run and printed

refuse() {
    printf 'setup-env.sh: %s\n' "$1" >&2
    exit 2
}

step() { printf '\n# %s\n' "$1"; }

# Prints a command, without the token in it.
print_command() {
    local mark=$1 word line=
    shift
    for word; do
        [[ -z $TOKEN ]] || word=${word//"$TOKEN"/<hub-token>}
        [[ $word =~ ^[][A-Za-z0-9_./:=,@%+{}\<\>-]+$ ]] || word=${word@Q}
        line+=" $word"
    done
    printf '%s%s\n' "$mark" "$line" >&3
}

# Runs a command that changes something.
run() {
    print_command + "$@"
    [[ $DRY_RUN == true ]] || "$@"
}

# Runs a command that reads something; a dry run behaves as if it did not exist.
ask() {
    print_command '?' "$@"
    [[ $DRY_RUN == false ]] && "$@" 2>/dev/null
}

on() { # CLUSTER ARGUMENTS…
    run kubectl --context "kind-$1" "${@:2}"
}

asked_on() { # CLUSTER ARGUMENTS…
    ask kubectl --context "kind-$1" "${@:2}"
}

# -- prerequisites

check_tools() {
    local tool found name oldest
    [[ $DRY_RUN == false ]] || return 0
    for tool in "${TOOLS[@]}"; do
        name=${tool%%:*} oldest=${tool##*:}
        [[ " $* " == *" $name "* ]] || continue
        command -v "$name" >/dev/null || refuse "install $name $oldest or newer: it is not on PATH"
        found=$(version_of "$name")
        is_at_least "$found" "$oldest" ||
            refuse "install $name $oldest or newer: found ${found:-no version}"
    done
}

version_of() {
    local said
    case $1 in
    docker) said=$(docker version --format '{{.Client.Version}}' 2>/dev/null) || true ;;
    kubectl) said=$(kubectl version --client 2>/dev/null) || true ;;
    *) said=$("$1" version 2>/dev/null) || true ;;
    esac
    [[ $said =~ [0-9]+\.[0-9]+\.[0-9]+ ]] && printf '%s' "${BASH_REMATCH[0]}" || true
}

is_at_least() { [[ -n $1 && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

# -- the steps

make_clusters() {
    local there cluster
    step "Create four clusters"
    there=$(ask kind get clusters) || true
    for cluster in "$HUB" "${WORKERS[@]}"; do
        is_among "$cluster" "$there" || run kind create cluster --name "$cluster" --wait 180s
    done
}

delete_clusters() {
    local there cluster
    step "Delete the clusters"
    there=$(ask kind get clusters) || there=$(printf '%s\n' "$HUB" "${WORKERS[@]}") # a dry run prints all of them
    for cluster in "$HUB" "${WORKERS[@]}"; do
        ! is_among "$cluster" "$there" || run kind delete cluster --name "$cluster"
    done
}

is_among() { [[ $'\n'$2$'\n' == *$'\n'"$1"$'\n'* ]]; }

make_hub() {
    local gates=()
    step "Install OCM on the hub"
    [[ $MODE != cluster-profile ]] || gates=(--feature-gates=ClusterProfile=true)
    asked_on "$HUB" get clustermanager cluster-manager >/dev/null ||
        run clusteradm init --wait "${gates[@]}" --context "kind-$HUB"
}

join_workers() {
    local worker api_server='<hub-apiserver>' strangers=()
    step "Join the workers"
    for worker in "${WORKERS[@]}"; do
        if ! asked_on "$HUB" get managedcluster "$worker" >/dev/null; then
            [[ -n $TOKEN ]] || get_token
            run clusteradm join --hub-token "$TOKEN" --hub-apiserver "$api_server" --cluster-name "$worker" \
                --force-internal-endpoint-lookup --wait --context "kind-$worker"
        fi
        set_address "$worker"
    done
    for worker in "${WORKERS[@]}"; do
        is_accepted "$worker" || strangers+=("$worker")
    done
    ((${#strangers[@]} == 0)) ||
        run clusteradm accept --clusters "$(joined "${strangers[@]}")" --wait --context "kind-$HUB"
}

# Sets TOKEN and api_server, which a cluster needs to join.
get_token() {
    local said
    if ! said=$(ask clusteradm get token --context "kind-$HUB"); then
        [[ $DRY_RUN == true ]] || refuse "clusteradm gives no token on $HUB"
        TOKEN='<hub-token>'
        return
    fi
    TOKEN=$(sed -n 's/^token=//p' <<<"$said")
    api_server=$(sed -n 's/.*--hub-apiserver \([^ ]*\).*/\1/p' <<<"$said")
    [[ -n $TOKEN && -n $api_server ]] || refuse "clusteradm gives no token on $HUB"
}

is_accepted() {
    [[ $(asked_on "$HUB" get managedcluster "$1" -o 'jsonpath={.spec.hubAcceptsClient}') == true ]]
}

joined() { local IFS=, && printf '%s' "$*"; }

# Sets the address of a worker; OCM copies it into the ManagedCluster, and kubeconfigs use it.
set_address() {
    local ca
    ca=$(ask kubectl config view --context "kind-$1" --raw --minify --flatten \
        -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}') || ca="<ca-of-$1>"
    on "$1" patch klusterlet klusterlet --type merge --patch \
        "{\"spec\":{\"externalServerURLs\":[{\"url\":\"https://$1-control-plane:6443\",\"caBundle\":\"$ca\"}]}}"
}

install_kueue() {
    local cluster values
    step "Install Kueue $KUEUE_VERSION on all clusters, and queues on the workers"
    for cluster in "$HUB" "${WORKERS[@]}"; do
        values=kind/kueue.yaml
        [[ $cluster != "$HUB" || $MODE != cluster-profile ]] || values=kind/kueue-cluster-profile.yaml
        install "$cluster" kueue-system kueue "$KUEUE_CHART" --version "${KUEUE_VERSION#v}" --values "$values"
    done
    if [[ $MODE == cluster-profile ]]; then
        on "$HUB" -n kueue-system patch deployment kueue-controller-manager --patch-file kind/kueue-plugin.yaml
        on "$HUB" -n kueue-system rollout status deployment/kueue-controller-manager --timeout "$PATIENCE"
    fi
    for cluster in "${WORKERS[@]}"; do
        on "$cluster" apply --server-side -f kind/worker-queues.yaml
    done
}

install() { # CLUSTER NAMESPACE NAME CHART ARGUMENTS…
    run helm upgrade --install "$3" "$4" --namespace "$2" --create-namespace --kube-context "kind-$1" \
        --wait --timeout "$PATIENCE" "${@:5}"
}

bind_cluster_set() {
    step "Create the cluster set of the samples"
    on "$HUB" apply --server-side -f samples/fleet/cluster-set.yaml
    on "$HUB" label managedcluster "${WORKERS[@]}" cluster.open-cluster-management.io/clusterset=spoke --overwrite
}

install_addons() {
    local addons=open-cluster-management-addon account=() proxy=()
    step "Install OCM's addons"
    if [[ $MODE == cluster-profile ]]; then
        # Charts of different releases use one name or the other, and ignore unknown names.
        account=(--set featureGates.clusterProfile=true --set featureGates.clusterProfileCredSyncer=true)
        proxy=(--set userServer.enabled=true --set enableServiceProxy=true
            --set featureGates.clusterProfileAccessProvider=true)
    fi
    run helm repo add ocm "$CHARTS" --force-update
    run helm repo update ocm
    install "$HUB" $addons managed-serviceaccount ocm/managed-serviceaccount "${account[@]}"
    install "$HUB" open-cluster-management cluster-permission ocm/cluster-permission \
        --set global.imageOverrides.cluster_permission=quay.io/open-cluster-management/cluster-permission:latest
    install "$HUB" $addons cluster-proxy ocm/cluster-proxy \
        --set installByPlacement.placementName=global --set installByPlacement.placementNamespace=$addons "${proxy[@]}"
    install "$HUB" $addons resource-usage-collect-addon ocm/resource-usage-collect-addon \
        --set skipClusterSetBinding=true \
        --set global.image.repository=quay.io/open-cluster-management/resource-usage-collect-addon
}

install_controller() {
    step "Build and install the controller"
    run docker build --tag "$IMAGE" .
    run kind load docker-image "$IMAGE" --name "$HUB"
    on "$HUB" apply --server-side -k "kind/$MODE"
    on "$HUB" -n placement-ac-system rollout restart deployment/placement-ac # the tag may name a new image
    on "$HUB" -n placement-ac-system rollout status deployment/placement-ac --timeout "$PATIENCE"
}

simulate_gpus() {
    local worker there="{\"nvidia.com/gpu\":\"$GPUS\"}"
    step "Simulate GPUs"
    for worker in "${GPU_WORKERS[@]}"; do
        on "$worker" patch node "$worker-control-plane" --subresource=status --type merge \
            --patch "{\"status\":{\"capacity\":$there,\"allocatable\":$there}}"
    done
    on "$HUB" label managedcluster "${GPU_WORKERS[@]}" accelerator=nvidia-tesla-t4 --overwrite
}

wait_for_all() {
    local worker addon
    step "Wait until everything is available"
    on "$HUB" wait managedcluster "${WORKERS[@]}" --for=condition=ManagedClusterConditionAvailable --timeout "$PATIENCE"
    for worker in "${WORKERS[@]}"; do
        for addon in "${ADDONS[@]}"; do
            on "$HUB" -n "$worker" wait "managedclusteraddon/$addon" --for=create --timeout "$PATIENCE"
            on "$HUB" -n "$worker" wait "managedclusteraddon/$addon" --for=condition=Available --timeout "$PATIENCE"
        done
        on "$HUB" -n "$worker" wait addonplacementscore/resource-usage-score --for=create --timeout "$PATIENCE"
    done
}

print_next_steps() {
    step "Done. Try: kubectl --context kind-$HUB get managedclusters; make test-kind"
}

((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))) || refuse "use bash 4.4 or newer"
main "$@"
