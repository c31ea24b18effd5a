module.exports = require("./plugin/index.js");
