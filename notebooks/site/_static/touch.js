// The things to touch: one small module each.
import { walk } from "./walk.js";
import { plane } from "./plane.js";
import { bound } from "./bound.js";

const base = new URL("./touch/", import.meta.url);
const data = (name) => fetch(new URL(name, base)).then((answer) => answer.json());
data("touch_walk.json").then((sets) => walk(document.getElementById("walk"), sets));
data("touch_plane.json").then((model) => plane(document.getElementById("plane"), model));
bound(document.getElementById("bound"));
