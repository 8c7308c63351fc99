// reference.cjs: computes greedy tokens of a model with llama.cpp, for compare.py:
//
//     node reference.cjs FOLDER MODEL 1,2,3 COUNT THREADS CONTEXT
//
// FOLDER contains the prebuilt llama-addon.node of npm's @node-llama-cpp/linux-x64. The cache uses F32, without flash
// attention. Prints each token's number and the lead of its logit over the second one, then the speed.
const path = require("path");

const [, , folder, file, prompt, count, threads, context] = process.argv;
const addon = require(path.join(folder, "llama-addon.node"));
const BATCH = 32, F32 = 0;

async function main() {
    addon.setLogger(() => {});
    addon.loadBackends(folder);
    await addon.init();
    const model = new addon.AddonModel(file, {gpuLayers: 0, addonExports: addon});
    if (!await model.init())
        throw new Error(`llama.cpp does not load ${file}`);
    const own = new addon.AddonContext(model, {
        contextSize: Number(context), batchSize: BATCH, sequences: 1, flashAttention: false, threads: Number(threads),
        kvCacheKeyType: F32, kvCacheValueType: F32});
    if (!await own.init())
        throw new Error("llama.cpp makes no context");
    const sampler = new addon.AddonSampler(model);
    sampler.applyConfig({temperature: 0});
    let tokens = Uint32Array.from(prompt.split(",").map(Number)), used = 0, begin;
    for (let made = 0; made < Number(count); made++) {
        let index;
        for (let at = 0; at < tokens.length; at += BATCH) {
            const part = tokens.slice(at, at + BATCH);
            own.initBatch(part.length);
            [index] = own.addToBatch(0, used, part, Uint32Array.from(at + BATCH < tokens.length ? [] : [part.length - 1]));
            await own.decodeBatch();
            used += part.length;
        }
        const [token, , , best] = await own.sampleToken(index, sampler, false, false, [[], false, false, false, 2]);
        console.log(token, best[1] - best[3]);
        tokens = Uint32Array.of(token);
        begin ??= process.hrtime.bigint();
    }
    console.log("speed", (Number(count) - 1) / (Number(process.hrtime.bigint() - begin) * 1e-9));
    process.exit(0);
}
main().catch((error) => {
    console.error(error);
    process.exit(1);
});
