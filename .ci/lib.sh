# What .ci/run and .ci/full share; sourced by both from the repository's root.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
export FLEXID_WIDE=1 # tests visit all of their cases

out=$(mktemp -d)
began=$SECONDS
now="the beginning"
declare -A aside=() # process groups that run beside, by name

clock() { printf '%d min %02d s' $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)); }

step() {
	now=$1
	printf '\n=== %s   (%s)\n' "$now" "$(clock)"
}

# beside NAME COMMAND...: runs it beside what follows, in a process group of its own, which ends with this script.
beside() {
	local name=$1
	shift
	set -m
	"$@" >"$out/$name.log" 2>&1 </dev/null &
	set +m
	aside[$name]=$!
}

# joined NAME: waits for what runs beside and shows what it said; it fails as that did.
joined() {
	local name=$1 code=0
	wait "${aside[$name]}" || code=$?
	unset "aside[$name]"
	cat "$out/$name.log"
	return $code
}

finish() {
	local code=$?
	trap - EXIT
	for group in "${aside[@]}"; do kill -- "-$group" 2>/dev/null || true; done
	wait || true
	for name in "${!aside[@]}"; do
		printf '\n--- %s, as far as it came\n' "$name"
		tail -n 100 "$out/$name.log" || true
	done
	rm -rf "$out"
	if [ $code -ne 0 ]; then
		printf '\n=== FAILED in: %s   (%s)\n' "$now" "$(clock)"
	fi
	exit $code
}
trap finish EXIT
trap 'exit 130' INT TERM
